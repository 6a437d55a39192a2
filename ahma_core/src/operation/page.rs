//! Reading an output log: its end, a range of it, or the lines that match a pattern. An answer is never larger than a
//! result, and says where to go on. What is not kept leaves a gap that answers lead over and name.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use regex::bytes::RegexBuilder;
use tokio::sync::Semaphore;

use super::{
    OutputGap, OutputLog, excerpt, grep,
    log::count_newlines,
    log_view::{LogReader, LogStore, LogView, Segment, SegmentStart},
};

/// Number of concurrent searches of all clients. Each may hold the longest line of its output in memory, and a core of
/// ours. Other reading is bounded and waits for none of them.
const MAX_SEARCHES: usize = 2;
static SEARCHES: Semaphore = Semaphore::const_new(MAX_SEARCHES);

/// Other searches wait for a slow one, and a client gives up on a request after a minute.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest pattern, when it is compiled. The time for a line grows with it.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A query of an output log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputQuery {
    /// The last lines.
    Tail { lines: u64 },
    /// Lines from a place on.
    Range { from: PageStart, max_lines: u64 },
    /// Lines that match a regular expression, numbered as `grep -n` does it, with `context` lines around each.
    Grep {
        pattern: String,
        context: usize,
        from_line: u64,
        max_lines: u64,
    },
}

impl OutputQuery {
    /// More context than this is a range, and no search.
    pub const MAX_CONTEXT: usize = 100;
}

/// Beginning of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageStart {
    /// Counted from one.
    Line(u64),
    /// Offset into the output; leads on inside a line that is longer than a page.
    Byte(u64),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// Decoded lossily.
    pub text: String,
    /// The number of the first line shown; none if no line is.
    pub first_line: Option<u64>,
    /// Number of lines shown, wholly or in part.
    pub lines: u64,
    /// Beginning of the next page, if there is more.
    pub next: Option<PageStart>,
    /// Beginning of that, or of what is printed after this page.
    pub next_byte: u64,
    /// Bytes of the last line shown, if it has no end yet.
    pub unfinished_bytes: u64,
    /// Number of matching lines, from the beginning of the search to the end; only for a search.
    pub matches: Option<u64>,
    /// The last line that a search looked at, if it took too long to go on.
    pub searched_to: Option<u64>,
    /// Bytes that a search did not look at, at the end of very long lines.
    pub unsearched_bytes: u64,
    /// Of the whole output, when this was read.
    pub total_lines: u64,
    pub total_bytes: u64,
    /// Output that no page can show.
    pub gap: Option<OutputGap>,
}

impl OutputPage {
    pub(super) fn empty(view: &LogView) -> Self {
        Self {
            text: String::new(),
            first_line: None,
            lines: 0,
            next: None,
            next_byte: view.total_bytes,
            unfinished_bytes: 0,
            matches: None,
            searched_to: None,
            unsearched_bytes: 0,
            total_lines: view.total_lines,
            total_bytes: view.total_bytes,
            gap: view.gap(),
        }
    }
}

/// Reason why an output log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error("grep: the pattern is not a regular expression: {0}")]
    Pattern(#[source] Box<regex::Error>),
    #[error("the stored output could not be read")]
    Storage(#[source] io::Error),
}

impl OutputLog {
    /// At most `max` of the kept bytes from `offset` on, exactly as they were printed; none if there are no more yet.
    pub async fn bytes(&self, offset: u64, max: usize) -> Result<Vec<u8>, PageError> {
        let log = self.clone();
        off_thread(move || log.bytes_from(offset, max).map_err(PageError::Storage)).await
    }

    /// Answers `query`. Patterns and stored output are worked on off the async threads; what is in memory is shown at once.
    /// A search ends soon after the future is dropped.
    pub async fn read(&self, query: OutputQuery) -> Result<OutputPage, PageError> {
        let page_bytes = self.page_bytes();
        match query {
            OutputQuery::Tail { lines } => Ok(tail(&self.view(), lines, page_bytes)),
            OutputQuery::Range { from, max_lines } => {
                let view = self.view();
                let read = move |view: &LogView| {
                    range(view, from, max_lines, page_bytes).map_err(PageError::Storage)
                };
                match view.store {
                    LogStore::Memory(_) => read(&view),
                    LogStore::File(_) => off_thread(move || read(&view)).await,
                }
            }
            OutputQuery::Grep {
                pattern,
                context,
                from_line,
                max_lines,
            } => {
                // The semaphore is never closed, so there is always a turn. It ends with the search, and not with the waiting.
                let turn = SEARCHES.acquire().await.ok();
                let view = self.view();
                let requester = Arc::new(());
                let is_asked = Arc::downgrade(&requester);
                let search = move || {
                    let _turn = turn;
                    // A large pattern takes long to compile, too.
                    let pattern = RegexBuilder::new(&pattern)
                        .size_limit(MAX_PATTERN_BYTES)
                        .build()
                        .map_err(|error| PageError::Pattern(Box::new(error)))?;
                    let search = grep::Search {
                        pattern,
                        context: context.min(OutputQuery::MAX_CONTEXT),
                        from_line: from_line.max(1),
                        max_lines,
                        page_bytes,
                        requester: is_asked,
                        deadline: Instant::now() + SEARCH_TIMEOUT,
                    };
                    grep::search(&view, &search).map_err(PageError::Storage)
                };
                let found = off_thread(search).await;
                drop(requester);
                found
            }
        }
    }
}

async fn off_thread<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|stopped| Err(PageError::Storage(io::Error::other(stopped))))
}

fn tail(view: &LogView, lines: u64, page_bytes: usize) -> OutputPage {
    // If there is more before it, the tail may begin inside a line; cutting something off finds the next border.
    let reaches_back = view.tail.len() as u64 == view.total_bytes;
    let budget = if reaches_back {
        page_bytes
    } else {
        page_bytes.min(view.tail.len()).saturating_sub(1)
    };
    let mut shown = &view.tail[excerpt::tail_cut(&view.tail, budget)..];
    let wanted = usize::try_from(lines).unwrap_or(usize::MAX);
    // The newline that ends the last line begins no other line.
    let body = shown.strip_suffix(b"\n").unwrap_or(shown);
    if wanted == 0 {
        shown = &[];
    } else if let Some(before) = memchr::memrchr_iter(b'\n', body).nth(wanted - 1) {
        shown = &shown[before + 1..];
    }
    let count = count_lines(shown);
    OutputPage {
        text: String::from_utf8_lossy(shown).into_owned(),
        first_line: (count > 0).then(|| view.total_lines - count + 1),
        lines: count,
        unfinished_bytes: unfinished(shown),
        ..OutputPage::empty(view)
    }
}

fn range(view: &LogView, from: PageStart, max_lines: u64, page_bytes: usize) -> io::Result<OutputPage> {
    let reader = view.reader()?;
    let (start, first_line, segment) = match from {
        PageStart::Line(line) => find_line(view, &reader, line.max(1))?,
        PageStart::Byte(offset) => find_byte(view, &reader, offset)?,
    };
    let available = segment.end - start;
    // A character may reach over the end of the page; it must be seen whole to be left to the next.
    let mut bytes = vec![0; (page_bytes as u64 + 3).min(available) as usize];
    reader.read_exact_at(&mut bytes, start)?;

    let mut shown = &bytes[..];
    let wanted = usize::try_from(max_lines).unwrap_or(usize::MAX);
    if wanted == 0 {
        shown = &[];
    } else if let Some(end) = memchr::memchr_iter(b'\n', shown).nth(wanted - 1) {
        shown = &shown[..=end];
    }
    let cut = excerpt::fitting_prefix(shown, page_bytes);
    let goes_on = (cut as u64) < available;
    // At the last line border, unless the page holds only a part of one line, or all that was asked for.
    if goes_on
        && shown.get(cut.wrapping_sub(1)) != Some(&b'\n')
        && let Some(newline) = memchr::memrchr(b'\n', &shown[..cut])
    {
        shown = &shown[..=newline];
    } else {
        shown = &shown[..cut];
    }

    let end = start + shown.len() as u64;
    let lines = count_lines(shown);
    let (next, next_byte) = if end < segment.end {
        let next = match shown.last() {
            Some(b'\n') => PageStart::Line(first_line + lines),
            Some(_) => PageStart::Byte(end),
            None => from,
        };
        (Some(next), end)
    } else {
        let after_gap = view.after_gap().filter(|after| after.start > end);
        let next_byte = after_gap.as_ref().map_or(end, |after| after.start);
        let next = after_gap.map(|after| match after.begins {
            SegmentStart::AtLine => PageStart::Line(after.first_line),
            SegmentStart::InsideLine => PageStart::Byte(after.start),
        });
        (next, next_byte)
    };
    Ok(OutputPage {
        text: String::from_utf8_lossy(shown).into_owned(),
        first_line: (lines > 0).then_some(first_line),
        lines,
        next,
        next_byte,
        unfinished_bytes: unfinished(shown),
        ..OutputPage::empty(view)
    })
}

/// The beginning of `line`, its number, and the segment it is in. For a line in the gap it is the first one after
/// it; if there is no such line, it is the end.
fn find_line(view: &LogView, reader: &LogReader<'_>, line: u64) -> io::Result<(u64, u64, Segment)> {
    let beginning = view.beginning();
    let start = line_start(reader, view.seek_line(line), line, beginning.end)?;
    match view.after_gap() {
        Some(after) if start == beginning.end => {
            let line = line.max(after.first_line);
            let start = line_start(reader, (after.start, after.first_line), line, after.end)?;
            Ok((start, line, after))
        }
        Some(_) | None => Ok((start, line, beginning)),
    }
}

/// The same for an offset.
fn find_byte(view: &LogView, reader: &LogReader<'_>, offset: u64) -> io::Result<(u64, u64, Segment)> {
    let beginning = view.beginning();
    match view.after_gap() {
        Some(after) if offset >= beginning.end => {
            let offset = offset.clamp(after.start, after.end);
            let mut between = vec![0; (offset - after.start) as usize];
            reader.read_exact_at(&mut between, after.start)?;
            Ok((offset, after.first_line + count_newlines(&between), after))
        }
        Some(_) | None => {
            let offset = offset.min(beginning.end);
            Ok((offset, view.line_of(offset, reader)?, beginning))
        }
    }
}

/// The offset where `line` begins, scanning from a line at or before it, or `end` if it does not begin before that.
fn line_start(reader: &LogReader<'_>, from: (u64, u64), line: u64, end: u64) -> io::Result<u64> {
    /// A scan reads this much at a time.
    const STEP_BYTES: u64 = 64 << 10;

    let (mut offset, at_line) = from;
    let mut missing = line - at_line;
    let mut buffer = vec![0; STEP_BYTES as usize];
    while missing > 0 && offset < end {
        let step = STEP_BYTES.min(end - offset);
        let chunk = &mut buffer[..step as usize];
        reader.read_exact_at(chunk, offset)?;
        let mut newlines = memchr::memchr_iter(b'\n', chunk);
        match newlines.nth(usize::try_from(missing - 1).unwrap_or(usize::MAX)) {
            Some(newline) => return Ok(offset + newline as u64 + 1),
            None => {
                missing -= count_newlines(chunk);
                offset += step;
            }
        }
    }
    Ok(offset)
}

fn count_lines(bytes: &[u8]) -> u64 {
    count_newlines(bytes) + u64::from(bytes.last().is_some_and(|&last| last != b'\n'))
}

fn unfinished(bytes: &[u8]) -> u64 {
    let complete = memchr::memrchr(b'\n', bytes).map_or(0, |newline| newline + 1);
    (bytes.len() - complete) as u64
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
