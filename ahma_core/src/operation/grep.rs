//! Searching an output log line by line, with the results and the layout of `grep -n -C`.
//!
//! `grep-searcher` does not keep our bounds: it fails at a line longer than its buffer where this searches the first part and
//! counts the rest, and it calls back at matches only, so a deadline between matches has no line to resume from.

use std::{borrow::Cow, collections::VecDeque, fmt::Write as _, io, ops::Range, sync::Weak, time::Instant};

use regex::bytes::Regex;

use crate::observe::displayed;

use super::{
    OutputPage, PageStart, excerpt,
    log_view::{LogReader, LogView, Segment},
};

/// A line is shown up to this many bytes.
const SHOWN_LINE_BYTES: usize = 2 << 10;

/// So much of a long line is shown before the match.
const BEFORE_MATCH_BYTES: usize = 256;

/// A line is searched up to this many bytes: no log has longer lines, and one of all the output must not be held.
const SEARCHED_LINE_BYTES: usize = 1 << 20;

/// Number of bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// After so many bytes the clock is looked at.
const CLOCK_BYTES: usize = 4 << 10;

/// A search.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) pattern: Regex,
    /// Lines shown before and after each match.
    pub(super) context: usize,
    /// Nothing before this line is shown or counted, but a match just before it still has its context after it, so
    /// that the pages of a search join without a gap.
    pub(super) from_line: u64,
    pub(super) max_lines: u64,
    pub(super) page_bytes: usize,
    /// Dropped when the answer is no longer awaited.
    pub(super) requester: Weak<()>,
    /// Time at which to answer with the matches found until then.
    pub(super) deadline: Instant,
}

/// Reads all there is to its end, so that the count is exact, and shows the first matches that fit on a page. What takes too
/// long is broken off after a line, and the next page goes on from there.
pub(super) fn search(view: &LogView, search: &Search) -> io::Result<OutputPage> {
    let mut hunt = Hunt {
        search,
        scan_from: search.from_line.saturating_sub(search.context as u64).max(1),
        page: Page::new(search),
        matches: 0,
        unsearched_bytes: 0,
        searched_to: None,
    };
    let (start, first_line) = view.seek_line(hunt.scan_from);
    hunt.through(
        view,
        Segment {
            start,
            first_line,
            ..view.beginning()
        },
    )?;
    if hunt.searched_to.is_none()
        && let Some(after_gap) = view.after_gap()
    {
        hunt.through(view, after_gap)?;
    }
    let page = hunt.page;
    Ok(OutputPage {
        text: page.text,
        first_line: page.first_line,
        lines: page.lines,
        next: page.next.map(PageStart::Line),
        matches: Some(hunt.matches),
        searched_to: hunt.searched_to,
        unsearched_bytes: hunt.unsearched_bytes,
        ..OutputPage::empty(view)
    })
}

/// A search that is under way.
struct Hunt<'a> {
    search: &'a Search,
    /// A match before this line has no context on the page.
    scan_from: u64,
    page: Page,
    matches: u64,
    unsearched_bytes: u64,
    /// Its last line, if it was broken off.
    searched_to: Option<u64>,
}

impl Hunt<'_> {
    /// Goes through lines that follow each other.
    fn through(&mut self, view: &LogView, segment: Segment) -> io::Result<()> {
        let search = self.search;
        let mut number = segment.first_line;
        let mut lines = Lines::new(view, segment, &search.requester)?;
        let mut before: VecDeque<(u64, String)> = VecDeque::new();
        let mut after = 0;
        let mut unclocked = 0;
        while let Some(line) = lines.next()? {
            unclocked += line.bytes.len() + 1;
            let line = line.folded();
            let in_reach = number >= self.scan_from;
            let on_page = number >= search.from_line;
            if on_page {
                self.unsearched_bytes += line.rest_bytes;
            }
            if in_reach && search.pattern.is_match(&line.bytes) {
                after = search.context;
                if on_page {
                    self.matches += 1;
                    for (number, text) in before.drain(..) {
                        self.page.push(number, '-', &text);
                    }
                    if !self.page.is_full() {
                        self.page.push(number, ':', &line.around(&search.pattern));
                    }
                }
            } else if in_reach && after > 0 {
                after -= 1;
                if on_page {
                    self.page.push(number, '-', &line.shown_from(0));
                }
            } else if on_page && search.context > 0 && !self.page.is_full() {
                if before.len() == search.context {
                    before.pop_front();
                }
                before.push_back((number, line.shown_from(0)));
            }
            number += 1;
            // Those that wait for a match are shown with it, on the next page.
            let next = before.front().map_or(number, |(first, _)| *first);
            if unclocked >= CLOCK_BYTES && next > search.from_line {
                unclocked = 0;
                if Instant::now() >= search.deadline {
                    self.searched_to = Some(number - 1);
                    self.page.next.get_or_insert(next);
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The text of the answer. Once a line does not fit, no later one is taken.
#[derive(Debug)]
struct Page {
    max_bytes: usize,
    max_lines: u64,
    /// Groups of lines have `--` between them.
    separated: bool,
    text: String,
    first_line: Option<u64>,
    last_line: u64,
    lines: u64,
    next: Option<u64>,
}

impl Page {
    fn new(search: &Search) -> Self {
        Self {
            max_bytes: search.page_bytes,
            max_lines: search.max_lines,
            separated: search.context > 0,
            text: String::new(),
            first_line: None,
            last_line: 0,
            lines: 0,
            next: None,
        }
    }

    fn is_full(&self) -> bool {
        self.next.is_some()
    }

    fn push(&mut self, number: u64, mark: char, line: &str) {
        if self.is_full() {
            return;
        }
        if self.lines >= self.max_lines {
            self.next = Some(number);
            return;
        }
        let length_before = self.text.len();
        if self.separated && self.first_line.is_some() && number > self.last_line + 1 {
            self.text.push_str("--\n");
        }
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "{number}{mark}{line}");
        if self.text.len() > self.max_bytes && self.first_line.is_some() {
            self.text.truncate(length_before);
            self.next = Some(number);
            return;
        }
        self.first_line.get_or_insert(number);
        self.last_line = number;
        self.lines += 1;
    }
}

/// A line without its newline, as far as it is searched.
struct SearchedLine<'a> {
    bytes: Cow<'a, [u8]>,
    rest_bytes: u64,
    /// Its offset in the output.
    offset: u64,
}

impl SearchedLine<'_> {
    /// The line as a terminal would show it in the end: a pattern is written for what is seen.
    fn folded(self) -> Self {
        let has_controls = memchr::memchr3(0x1b, b'\r', 0x08, &self.bytes).is_some();
        if !has_controls || self.rest_bytes > 0 {
            return self;
        }
        let shown = displayed(&String::from_utf8_lossy(&self.bytes)).into_owned();
        Self {
            bytes: Cow::Owned(shown.into_bytes()),
            ..self
        }
    }

    /// A line as the answer shows it: if it is long, the part where the pattern matches first.
    fn around(&self, pattern: &Regex) -> String {
        if self.bytes.len() <= SHOWN_LINE_BYTES {
            return self.shown_from(0);
        }
        let start = match pattern.find(&self.bytes) {
            Some(found) if found.end() > SHOWN_LINE_BYTES => found.start().saturating_sub(BEFORE_MATCH_BYTES),
            Some(_) | None => 0,
        };
        self.shown_from(start)
    }

    /// Text left out of it is counted, with the `from_byte` that reads it.
    fn shown_from(&self, start: usize) -> String {
        let start = match start {
            0 => 0,
            inside => excerpt::character_start(&self.bytes, inside),
        };
        let end = start + excerpt::fitting_prefix(&self.bytes[start..], SHOWN_LINE_BYTES);
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        if start > 0 {
            let _ = write!(
                text,
                "[... {start} bytes left out of this line: from_byte {} ...] ",
                self.offset
            );
        }
        text.push_str(&String::from_utf8_lossy(&self.bytes[start..end]));
        let left_out = (self.bytes.len() - end) as u64 + self.rest_bytes;
        if left_out > 0 {
            // Places in a folded line are none in the output.
            let from_byte = match self.bytes {
                Cow::Borrowed(_) => self.offset + end as u64,
                Cow::Owned(_) => self.offset,
            };
            let _ = write!(
                text,
                " [... {left_out} bytes left out of this line: from_byte {from_byte} ...]"
            );
        }
        text
    }
}

/// Lines of a segment of output, one after the other, without their newline.
struct Lines<'view> {
    reader: LogReader<'view>,
    requester: &'view Weak<()>,
    /// `buffer[used..]` was read and not yet given out.
    buffer: Vec<u8>,
    used: usize,
    /// Offset of the next read, and the end of reading.
    offset: u64,
    end: u64,
}

impl<'view> Lines<'view> {
    fn new(view: &'view LogView, segment: Segment, requester: &'view Weak<()>) -> io::Result<Self> {
        Ok(Self {
            reader: view.reader()?,
            requester,
            buffer: Vec::new(),
            used: 0,
            offset: segment.start,
            end: segment.end,
        })
    }

    fn next(&mut self) -> io::Result<Option<SearchedLine<'_>>> {
        // Bytes of the unused part that are known to hold no newline.
        let mut searched = 0;
        loop {
            self.go_on()?;
            let start = self.used;
            let offset = self.offset - (self.buffer.len() - start) as u64;
            if let Some(newline) = memchr::memchr(b'\n', &self.buffer[start + searched..]) {
                let end = start + searched + newline;
                self.used = end + 1;
                return Ok(Some(self.line(start..end, offset, 0)));
            }
            searched = self.buffer.len() - start;
            let end = self.buffer.len();
            if self.offset == self.end || searched > SEARCHED_LINE_BYTES {
                let skipped = self.skip_line()?;
                self.used = end;
                return Ok((searched > 0).then(|| self.line(start..end, offset, skipped)));
            }
            self.refill()?;
        }
    }

    /// Fails if the answer is no longer awaited.
    fn go_on(&self) -> io::Result<()> {
        if self.requester.strong_count() == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }

    /// The line that stands in the buffer; `skipped` bytes of it do not.
    fn line(&self, place: Range<usize>, offset: u64, skipped: u64) -> SearchedLine<'_> {
        let searched_end = place.end.min(place.start + SEARCHED_LINE_BYTES);
        SearchedLine {
            bytes: Cow::Borrowed(&self.buffer[place.start..searched_end]),
            rest_bytes: (place.end - searched_end) as u64 + skipped,
            offset,
        }
    }

    /// Passes over the rest of a line without keeping it; says how long that is.
    fn skip_line(&mut self) -> io::Result<u64> {
        let mut chunk = vec![0; READ_BYTES];
        let mut skipped = 0;
        while self.offset < self.end {
            self.go_on()?;
            let step = (READ_BYTES as u64).min(self.end - self.offset) as usize;
            self.reader.read_exact_at(&mut chunk[..step], self.offset)?;
            if let Some(newline) = memchr::memchr(b'\n', &chunk[..step]) {
                self.offset += newline as u64 + 1;
                return Ok(skipped + newline as u64);
            }
            self.offset += step as u64;
            skipped += step as u64;
        }
        Ok(skipped)
    }

    /// Reads on; only an unfinished line stays from before, so the buffer holds little more than is searched of one.
    fn refill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let step = (READ_BYTES as u64).min(self.end - self.offset) as usize;
        let filled = self.buffer.len();
        self.buffer.resize(filled + step, 0);
        self.reader
            .read_exact_at(&mut self.buffer[filled..], self.offset)?;
        self.offset += step as u64;
        Ok(())
    }
}

#[cfg(test)]
#[path = "grep_tests.rs"]
mod tests;
