//! Runs rules over a recorded output, line by line.
//!
//! A recording is plain text, or a capture with the time and stream of every piece, where control characters stand escaped:
//!
//! ```text
//! # cmd: curl -# http://localhost/big.bin   [pipes]
//! +0.22 err| \r
//! +0.22 err| ########      54.9%
//! # exit 0 after 1.42s
//! ```

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde::Serialize;

use super::{Observer, StdioNeed, StreamEvent, StreamName, StreamRules};

/// A line of a recording and what it gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayedLine {
    /// Counted from 1.
    pub line_no: usize,
    /// The text, as it stands in the recording.
    pub text: String,
    pub events: Vec<StreamEvent>,
}

/// One piece of output in a capture.
struct CapturedPiece<'a> {
    at: Duration,
    source: StreamName,
    text: &'a str,
}

/// Runs the rules over a recording. Gives every line of output, also those that say nothing.
pub fn replay(rules: &Arc<StreamRules>, recording: &str) -> Vec<ReplayedLine> {
    if is_capture(recording) {
        replay_capture(rules, recording)
    } else {
        replay_text(rules, recording)
    }
}

fn is_capture(recording: &str) -> bool {
    recording.lines().any(|line| parse_piece(line).is_some())
        && recording
            .lines()
            .all(|line| line.is_empty() || line.starts_with('#') || parse_piece(line).is_some())
}

fn replay_text(rules: &Arc<StreamRules>, text: &str) -> Vec<ReplayedLine> {
    let mut observer = Observer::new(Arc::clone(rules));
    let mut lines = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let events = observer.feed(StreamName::Stdout, line.as_bytes(), Duration::ZERO);
        lines.push(ReplayedLine {
            line_no: index + 1,
            text: line.trim_end_matches(['\r', '\n']).to_owned(),
            events,
        });
    }
    add_to_last(&mut lines, observer.finish());
    lines
}

/// Pieces of several runs may follow each other; each run has its own observer.
fn replay_capture(rules: &Arc<StreamRules>, capture: &str) -> Vec<ReplayedLine> {
    let is_one_stream = rules.stdio() != StdioNeed::Separate;
    let mut observer = Observer::new(Arc::clone(rules));
    let mut lines = Vec::new();
    for (index, line) in capture.lines().enumerate() {
        if line.starts_with("# cmd:") {
            add_to_last(&mut lines, observer.finish());
            observer = Observer::new(Arc::clone(rules));
        }
        let Some(piece) = parse_piece(line) else { continue };
        add_to_last(&mut lines, observer.tick(piece.at));
        let source = if is_one_stream {
            StreamName::Stdout
        } else {
            piece.source
        };
        let events = observer.feed(source, piece.unescaped(rules).as_bytes(), piece.at);
        lines.push(ReplayedLine {
            line_no: index + 1,
            text: piece.text.to_owned(),
            events,
        });
    }
    add_to_last(&mut lines, observer.finish());
    lines
}

/// The output in a capture, without its times.
#[cfg(test)]
pub(super) fn captured_bytes(rules: &StreamRules, capture: &str) -> Vec<(StreamName, String)> {
    capture
        .lines()
        .filter_map(parse_piece)
        .map(|piece| (piece.source, piece.unescaped(rules)))
        .collect()
}

/// A piece of the output in a recording.
pub(super) struct RecordedPiece<'a> {
    /// Line of the recording, counted from 1.
    pub(super) number: usize,
    pub(super) source: StreamName,
    pub(super) text: Cow<'a, str>,
}

/// The output in a recording, as the rules would be given it.
pub(super) fn pieces<'a>(rules: &StreamRules, recording: &'a str) -> Vec<RecordedPiece<'a>> {
    let numbered = (1..).zip(recording.split_inclusive('\n'));
    if !is_capture(recording) {
        let piece = |(number, line)| RecordedPiece {
            number,
            source: StreamName::Stdout,
            text: Cow::Borrowed(line),
        };
        return numbered.map(piece).collect();
    }
    let piece = |(number, line): (usize, &'a str)| {
        let piece = parse_piece(line.trim_end_matches('\n'))?;
        Some(RecordedPiece {
            number,
            source: match rules.stdio() {
                StdioNeed::Separate => piece.source,
                StdioNeed::Merged | StdioNeed::Pty => StreamName::Stdout,
            },
            text: Cow::Owned(piece.unescaped(rules)),
        })
    };
    numbered.filter_map(piece).collect()
}

fn add_to_last(lines: &mut [ReplayedLine], events: Vec<StreamEvent>) {
    if let Some(last) = lines.last_mut() {
        last.events.extend(events);
    }
}

/// `+0.22 err| text`
fn parse_piece(line: &str) -> Option<CapturedPiece<'_>> {
    let (at, rest) = line.strip_prefix('+')?.split_once(' ')?;
    let (source, text) = rest.split_once('|')?;
    Some(CapturedPiece {
        at: Duration::try_from_secs_f64(at.parse().ok()?).ok()?,
        source: match source {
            "out" | "tty" => StreamName::Stdout,
            "err" => StreamName::Stderr,
            _ => return None,
        },
        text: text.strip_prefix(' ').unwrap_or(text),
    })
}

impl CapturedPiece<'_> {
    /// Undoes the escapes of a capture. A capture begins a new piece behind every newline and does not escape
    /// backslashes, so `\n` means one only at the end of a piece, and what looks like an escape inside JSON belongs to it.
    fn unescaped(&self, rules: &StreamRules) -> String {
        let (body, end) = match (self.text.strip_suffix("\\r\\n"), self.text.strip_suffix("\\n")) {
            (Some(body), _) => (body, "\r\n"),
            (None, Some(body)) => (body, "\n"),
            (None, None) => (self.text, ""),
        };
        if rules.has_json_text() && self.source == StreamName::Stdout {
            return format!("{body}{end}");
        }
        body.replace("\\r", "\r").replace("\\x1b", "\x1b") + end
    }
}
