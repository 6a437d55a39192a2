//! Reads the output of one run by its tool's rules.
//!
//! Time comes in as an argument and matters for one thing: a line that is still unfinished after [`QUIET`] is looked at for
//! progress, since many tools redraw one line. Findings wait for the end of their line: half a line would give half a
//! finding, and which half would depend on how busy the machine is.

use std::{sync::Arc, time::Duration};

use super::{
    Digest, RunContext, StreamEvent, StreamName, StreamRules,
    digest::PlainLines,
    framing::{DocumentReader, ElementReader, LineReader},
    notes::{Gap, Notes},
    preset,
    rules::{LineContext, Reading, Sighting},
    stream_block::Framing,
};

/// An unfinished line is looked at after this time without output.
const QUIET: Duration = Duration::from_millis(100);

/// The reader of one run. What it returns does not depend on how the bytes were cut into chunks.
#[derive(Debug)]
pub struct Observer {
    rules: Arc<StreamRules>,
    stdout: StdoutReader,
    stderr: WatchedLines,
    notes: Notes,
    unread: Unread,
}

#[derive(Debug)]
enum StdoutReader {
    Lines(WatchedLines),
    Document(DocumentReader),
    Elements(ElementReader),
}

/// The beginning of a stdout that should be a document; if it is none, these lines say why.
#[derive(Debug)]
struct Unread {
    reader: LineReader,
    lines: PlainLines,
    room: usize,
}

/// Messages are shorter than this, and documents are not looked at any further.
const UNREAD_BYTES: usize = 16 << 10;

/// Lines, and when the unfinished one last grew.
#[derive(Debug)]
struct WatchedLines {
    source: StreamName,
    reader: LineReader,
    tail: Tail,
    context: LineContext,
}

/// State of the unfinished line.
#[derive(Debug, Clone, Copy)]
enum Tail {
    /// It changed at this time, and was not looked at since.
    Changed(Duration),
    /// It was looked at for progress.
    Seen,
    /// It was a whole JSON value, of this many bytes, and everything was taken from it.
    Taken(usize),
}

impl Observer {
    pub fn new(rules: Arc<StreamRules>) -> Self {
        Self::for_run(rules, RunContext::default())
    }

    pub fn for_run(rules: Arc<StreamRules>, run: RunContext) -> Self {
        let limits = rules.limits;
        let stdout = match rules.reading {
            Reading::Framed(Framing::Lines | Framing::JsonLines) => {
                StdoutReader::Lines(WatchedLines::new(StreamName::Stdout, limits.frame_bytes))
            }
            Reading::Framed(Framing::JsonDocument) | Reading::Sarif => {
                StdoutReader::Document(DocumentReader::new(limits.document_bytes))
            }
            Reading::Framed(Framing::Xml) => {
                StdoutReader::Elements(ElementReader::new(limits.frame_bytes, rules.elements()))
            }
        };
        Self {
            stdout,
            stderr: WatchedLines::new(StreamName::Stderr, limits.frame_bytes),
            unread: Unread::new(),
            notes: Notes::new(run, &rules),
            rules,
        }
    }

    /// Takes in bytes as they were read. `now` is the time since the run began.
    pub fn feed(&mut self, source: StreamName, bytes: &[u8], now: Duration) -> Vec<StreamEvent> {
        let mut input = bytes;
        match (source, &mut self.stdout) {
            (StreamName::Stderr, _) => self.stderr.feed(input, now, &self.rules, &mut self.notes),
            (StreamName::Stdout, StdoutReader::Lines(lines)) => {
                lines.feed(input, now, &self.rules, &mut self.notes);
            }
            (StreamName::Stdout, StdoutReader::Document(reader)) => {
                self.unread.feed(bytes);
                while let Some(document) = reader.next_document(&mut input) {
                    take_document(&document, &self.rules, &mut self.notes);
                    self.unread.discard();
                }
            }
            (StreamName::Stdout, StdoutReader::Elements(reader)) => {
                self.unread.feed(bytes);
                while let Some((ancestors, element)) = reader.next_element(&mut input) {
                    self.unread.discard();
                    self.notes
                        .watch(|run| self.rules.look_at_element(ancestors, element, run));
                }
            }
        }
        self.note_gaps();
        self.notes.take()
    }

    /// Number of bytes held that are yet to be read as a whole. The time for reading them grows with it, so a caller that must
    /// not block can tell.
    pub fn held_bytes(&self) -> usize {
        let on_stdout = match &self.stdout {
            StdoutReader::Lines(lines) => lines.reader.held_bytes(),
            StdoutReader::Document(reader) => reader.held_bytes(),
            // Read piece by piece, as they come.
            StdoutReader::Elements(_) => 0,
        };
        on_stdout.max(self.stderr.reader.held_bytes())
    }

    fn note_gaps(&mut self) {
        let limits = self.rules.limits;
        let long_line = Gap::LongLine {
            max_bytes: limits.frame_bytes,
        };
        let on_stdout = match &self.stdout {
            StdoutReader::Lines(lines) => lines.reader.has_cut().then_some(long_line),
            StdoutReader::Document(reader) => reader.has_skipped().then_some(Gap::LongDocument {
                max_bytes: limits.document_bytes,
            }),
            StdoutReader::Elements(reader) => reader.has_dropped().then_some(Gap::LargeElement),
        };
        let on_stderr = self.stderr.reader.has_cut().then_some(long_line);
        for gap in [on_stdout, on_stderr].into_iter().flatten() {
            self.notes.add_gap(gap);
        }
    }

    /// Looks at unfinished lines that have been quiet for long enough.
    pub fn tick(&mut self, now: Duration) -> Vec<StreamEvent> {
        if let StdoutReader::Lines(lines) = &mut self.stdout {
            lines.tick(now, &self.rules, &mut self.notes);
        }
        self.stderr.tick(now, &self.rules, &mut self.notes);
        self.notes.take()
    }

    /// Time at which [`Observer::tick`] has something to do next, if nothing is fed before.
    pub fn next_tick(&self) -> Option<Duration> {
        let stdout = match &self.stdout {
            StdoutReader::Lines(lines) => lines.next_tick(),
            StdoutReader::Document(_) | StdoutReader::Elements(_) => None,
        };
        [stdout, self.stderr.next_tick()].into_iter().flatten().min()
    }

    /// Takes in what is left when the output has ended.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        match &mut self.stdout {
            StdoutReader::Lines(lines) => lines.finish(&self.rules, &mut self.notes),
            StdoutReader::Document(reader) => {
                let cut_off = reader.cut_off();
                cut_off
                    .iter()
                    .for_each(|_| self.notes.add_gap(Gap::CutOffDocument));
                let take = |document: &String| take_document(document, &self.rules, &mut self.notes);
                // What looks like the start of a document may be noise in front of one.
                if cut_off.as_ref().is_some_and(take) {
                    self.unread.discard();
                } else {
                    for document in reader.finish() {
                        take_document(&document, &self.rules, &mut self.notes);
                        self.unread.discard();
                    }
                }
            }
            StdoutReader::Elements(_) => {}
        }
        self.stderr.finish(&self.rules, &mut self.notes);
        self.notes.digest.add_plain(&self.unread.finish());
        self.notes.take()
    }

    /// The part of the output that is worth showing.
    pub fn into_digest(self) -> Digest {
        self.notes.digest
    }
}

impl Unread {
    fn new() -> Self {
        Self {
            reader: LineReader::new(UNREAD_BYTES),
            lines: PlainLines::default(),
            room: UNREAD_BYTES,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut input = &bytes[..bytes.len().min(self.room)];
        self.room -= input.len();
        while let Some(line) = self.reader.next_line(&mut input) {
            self.lines.push(&line);
        }
    }

    /// It was a document.
    fn discard(&mut self) {
        *self = Self {
            room: 0,
            ..Self::new()
        };
    }

    fn finish(&mut self) -> PlainLines {
        if let Some(line) = self.reader.finish() {
            self.lines.push(&line);
        }
        std::mem::take(&mut self.lines)
    }
}

/// Takes everything from a document; true if rules matched anything in it. It is complete, so of its progress only the last
/// state matters.
fn take_document(document: &str, rules: &StreamRules, notes: &mut Notes) -> bool {
    let mut last_progress = None;
    let mut has_matched = false;
    let take = |notes: &mut Notes, sighting| {
        has_matched = true;
        match sighting {
            Sighting::Finding(_) | Sighting::Summary(_) => notes.add(sighting),
            Sighting::Progress(reading) => {
                last_progress = notes.meter.apply(reading).or(last_progress.take());
            }
        }
    };
    notes.watch_with(take, |run| {
        if rules.reading == Reading::Sarif {
            preset::read_sarif(document, run.note);
        }
        rules.look_at_json(StreamName::Stdout, document, run);
    });
    notes.events.extend(last_progress.map(StreamEvent::Progress));
    has_matched
}

impl WatchedLines {
    fn new(source: StreamName, max_bytes: usize) -> Self {
        Self {
            source,
            reader: LineReader::new(max_bytes),
            tail: Tail::Seen,
            context: LineContext::default(),
        }
    }

    fn feed(&mut self, mut input: &[u8], now: Duration, rules: &StreamRules, notes: &mut Notes) {
        while let Some(line) = self.reader.next_line(&mut input) {
            take_line(self.source, &line, self.tail, &mut self.context, rules, notes);
            self.tail = Tail::Seen;
        }
        self.tail = match self.tail {
            _ if !self.reader.has_unfinished() => Tail::Seen,
            Tail::Taken(length) if self.unfinished_length() == length => self.tail,
            Tail::Taken(_) | Tail::Changed(_) | Tail::Seen => Tail::Changed(now),
        };
    }

    fn unfinished_length(&self) -> usize {
        self.reader.unfinished().map_or(0, |line| line.trim_end().len())
    }

    fn tick(&mut self, now: Duration, rules: &StreamRules, notes: &mut Notes) {
        if self.next_tick().is_none_or(|due| now < due) {
            return;
        }
        let Some(line) = self.reader.unfinished() else {
            return;
        };
        let source = self.source;
        // A JSON value says itself where it ends; a line of text does not.
        let is_json = rules.has_json_lines() && notes.watch(|run| rules.look_at_json(source, &line, run));
        self.tail = if is_json {
            Tail::Taken(line.trim_end().len())
        } else {
            notes.watch_with(Notes::add_progress_of_tail, |run| {
                rules.look_at_unfinished(source, &line, &self.context, run);
            });
            Tail::Seen
        };
    }

    fn next_tick(&self) -> Option<Duration> {
        match self.tail {
            Tail::Changed(at) => Some(at + QUIET),
            Tail::Seen | Tail::Taken(_) => None,
        }
    }

    fn finish(&mut self, rules: &StreamRules, notes: &mut Notes) {
        if let Some(line) = self.reader.finish() {
            take_line(self.source, &line, self.tail, &mut self.context, rules, notes);
        }
        notes.watch(|run| rules.close_blocks(&mut self.context, run));
        self.tail = Tail::Seen;
    }
}

/// Takes everything from a finished line.
fn take_line(
    source: StreamName,
    line: &str,
    tail: Tail,
    context: &mut LineContext,
    rules: &StreamRules,
    notes: &mut Notes,
) {
    if matches!(tail, Tail::Taken(length) if length == line.trim_end().len()) {
        return;
    }
    if rules.has_json_lines() && notes.watch(|run| rules.look_at_json(source, line, run)) {
        return;
    }
    let line_use = notes.watch(|run| rules.look_at_line(source, line, context, run));
    notes.digest.add_line(line, line_use);
}
