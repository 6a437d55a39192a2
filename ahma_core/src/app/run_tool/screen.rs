//! What a person sees on stderr while a tool runs: a bar on a terminal, a few plain lines elsewhere.
//!
//! The bar is the last line of the screen and is gone whenever something else is written. While the command's own
//! output stands in the middle of a line on the same terminal, there is no bar.

use std::{
    io::{IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use ahma_flags::words::counted;

use crate::{
    observe::{Finding, Severity},
    operation::Snapshot,
};

/// Faster than this nobody reads, slower looks stuck.
const PACE: Duration = Duration::from_millis(100);

/// A command that is done sooner needs no bar.
const PATIENCE: Duration = Duration::from_millis(300);

/// Cells of the bar itself.
const BAR_CELLS: usize = 20;

/// For a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;

#[derive(Debug)]
pub(super) struct Screen {
    tool: String,
    colour: bool,
    progress: ProgressStyle,
    /// The output stands in the middle of a line.
    mid_line: bool,
}

#[derive(Debug)]
enum ProgressStyle {
    Bar(Bar),
    /// What was said last: tens of percent, phase.
    Lines(Option<u32>, Option<String>),
}

#[derive(Debug)]
struct Bar {
    drawn: bool,
    last: Option<Instant>,
    /// stdout is a terminal too, so output and bar share it.
    shared: bool,
    mid_line: bool,
}

impl Screen {
    /// `colour` says whether it is wanted; whether it is possible is found out here.
    pub(super) fn open(tool: &str, colour: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let terminal = std::io::stderr().is_terminal() && !dumb;
        let progress = if terminal {
            ProgressStyle::Bar(Bar {
                drawn: false,
                last: None,
                shared: std::io::stdout().is_terminal(),
                mid_line: false,
            })
        } else {
            ProgressStyle::Lines(None, None)
        };
        Self {
            tool: tool.to_owned(),
            colour: colour && terminal,
            progress,
            mid_line: false,
        }
    }

    /// Whether somebody watches.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.progress, ProgressStyle::Bar(_))
    }

    /// `bytes` of the command's output are about to be written.
    pub(super) fn before_output(&mut self, bytes: &[u8]) {
        self.clear();
        self.mid_line = bytes.last().is_some_and(|&last| last != b'\n');
        if let ProgressStyle::Bar(bar) = &mut self.progress {
            bar.mid_line = bar.shared && self.mid_line;
        }
    }

    pub(super) fn progress(&mut self, now: &Snapshot) {
        match &mut self.progress {
            ProgressStyle::Bar(bar) => {
                let due = bar.last.is_none_or(|last| last.elapsed() >= PACE);
                if due && !bar.mid_line && now.elapsed >= PATIENCE {
                    let width = match rustix::termios::tcgetwinsize(std::io::stderr()) {
                        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
                        Ok(_) | Err(_) => USUAL_WIDTH,
                    };
                    // One cell is left free: a full line would scroll.
                    write(&format!(
                        "\r\x1b[K{}",
                        cut(&bar_line(&self.tool, now), width.saturating_sub(1))
                    ));
                    bar.drawn = true;
                    bar.last = Some(Instant::now());
                }
            }
            // Both streams may lead to one place, where this would cut a line in two.
            ProgressStyle::Lines(..) if self.mid_line => {}
            ProgressStyle::Lines(tens, phase) => {
                let now_tens = now.progress.percent.map(|percent| (percent / 10.0) as u32);
                let news = now_tens > *tens || (now.progress.phase.is_some() && now.progress.phase != *phase);
                if news {
                    (*tens, *phase) = (now_tens.max(*tens), now.progress.phase.clone());
                    write(&format!("progress: {}\n", state_line(now)));
                }
            }
        }
    }

    pub(super) fn finding(&mut self, finding: &Finding) {
        let (on, off) = match (self.colour, finding.severity) {
            (false, _) | (true, Severity::Info) => ("", ""),
            (true, Severity::Critical | Severity::High) => ("\x1b[31m", "\x1b[0m"),
            (true, Severity::Medium | Severity::Low) => ("\x1b[33m", "\x1b[0m"),
        };
        let part = |before: &str, text: &Option<String>| {
            text.as_ref()
                .map(|text| format!("{before}{text}"))
                .unwrap_or_default()
        };
        self.line(&format!(
            "finding: {on}{}{off}: {}{}{}{}",
            finding.severity.as_str(),
            finding.title,
            part(" ", &finding.cve),
            part(" at ", &finding.location),
            part("; ", &finding.remediation),
        ));
    }

    /// A whole line of ours, below what the command left unfinished.
    pub(super) fn line(&mut self, text: &str) {
        self.clear();
        if let ProgressStyle::Bar(bar) = &mut self.progress
            && std::mem::take(&mut bar.mid_line)
        {
            write("\n");
        }
        write(&format!("{text}\n"));
    }

    fn clear(&mut self) {
        if let ProgressStyle::Bar(bar) = &mut self.progress
            && std::mem::take(&mut bar.drawn)
        {
            write("\r\x1b[K");
            bar.last = None;
        }
    }
}

fn bar_line(tool: &str, now: &Snapshot) -> String {
    match now.progress.percent {
        Some(percent) => {
            let full = ((percent / 100.0) * BAR_CELLS as f64) as usize;
            let bar: String = (0..BAR_CELLS)
                .map(|cell| if cell < full { '#' } else { '.' })
                .collect();
            format!("{tool} [{bar}] {}", state_line(now))
        }
        None => format!("{tool} {}", state_line(now)),
    }
}

/// `42%, compiling, step 2 of 3: cargo test, 12 s, 3 findings`, as far as it is known.
fn state_line(now: &Snapshot) -> String {
    let mut parts = Vec::new();
    parts.extend(now.progress.percent.map(|percent| format!("{percent:.0}%")));
    parts.extend(now.progress.phase.clone());
    if let Some(step) = &now.step {
        parts.push(format!("step {} of {}: {}", step.number, step.of, step.label));
    }
    parts.push(format!("{} s", now.elapsed.as_secs()));
    let findings = now.finding_counts.total();
    if findings > 0 {
        parts.push(counted(findings, "finding"));
    }
    parts.join(", ")
}

/// As much of the line as fits. What it says comes from the command's output, so nothing in it may move the cursor.
fn cut(line: &str, width: usize) -> String {
    let mut left = width;
    line.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take_while(|&c| {
            let cells = cells(c);
            let fits = cells <= left;
            left = left.saturating_sub(cells);
            fits
        })
        .collect()
}

/// How many cells a terminal gives a character. Where fonts disagree, the larger number: a short bar does no harm.
fn cells(c: char) -> usize {
    match u32::from(c) {
        // Marks that stand on the character before them, and joiners.
        0x300..=0x36F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        // Hangul, CJK, full-width forms, pictures and emoji.
        0x1100..=0x115F
        | 0x2300..=0x23FF
        | 0x2600..=0x27BF
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F000..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// stderr may be closed; nothing depends on it.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_cells_of_the_terminal() {
        for (line, width, expected) in [
            ("compiling", 20, "compiling"),
            ("compiling", 4, "comp"),
            ("编译进行中", 4, "编译"),
            ("编译进行中", 5, "编译"),
            ("e\u{301}e\u{301}x", 2, "e\u{301}e\u{301}"),
            ("a\u{1b}[2Jb\nc", 20, "a [2Jb c"),
            ("x", 0, ""),
        ] {
            assert_eq!(cut(line, width), expected, "{line:?} in {width}");
        }
    }
}
