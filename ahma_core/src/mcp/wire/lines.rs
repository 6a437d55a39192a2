//! Bytes into lines, with bounded memory.

use std::io;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// What the next stretch of input was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its line end; may be empty.
    Text(BytesMut),
    /// Longer than the limit; dropped as it came.
    TooLong,
    /// There is no more input.
    End,
}

/// Reads lines of at most `limit` bytes.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    input: R,
    limit: usize,
    buffer: BytesMut,
    /// How much of `buffer` is known to hold no line end.
    searched: usize,
    /// The rest of the current line belongs to one that was too long.
    discarding: bool,
}

/// Enough for nearly every message in one read.
const READ_SIZE: usize = 16 * 1024;

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            buffer: BytesMut::new(),
            searched: 0,
            discarding: false,
        }
    }

    /// The next line. Safe to drop half-way: what was read stays for the next call.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        loop {
            if let Some(line) = self.buffered_line() {
                return Ok(line);
            }
            self.buffer.reserve(READ_SIZE);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                // A last line without its end is still a message.
                let rest = self.buffer.split();
                return Ok(if rest.is_empty() || self.discarding {
                    Line::End
                } else {
                    Line::Text(rest)
                });
            }
        }
    }

    /// A line that is already here. Every call makes progress or leaves less than `limit` bytes.
    fn buffered_line(&mut self) -> Option<Line> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.searched..]).map(|found| self.searched + found);
            match end {
                Some(end) if self.discarding => {
                    self.buffer.advance(end + 1);
                    self.searched = 0;
                    self.discarding = false;
                }
                Some(end) => {
                    let mut line = self.buffer.split_to(end + 1);
                    self.searched = 0;
                    if end > self.limit {
                        return Some(Line::TooLong);
                    }
                    let carriage_return = usize::from(line[..end].last() == Some(&b'\r'));
                    line.truncate(end - carriage_return);
                    return Some(Line::Text(line));
                }
                None => {
                    self.searched = self.buffer.len();
                    if self.searched <= self.limit && !self.discarding {
                        return None;
                    }
                    // A fresh buffer, so that one huge line does not hold its memory for ever.
                    self.buffer = BytesMut::new();
                    self.searched = 0;
                    let first_notice = !std::mem::replace(&mut self.discarding, true);
                    return first_notice.then_some(Line::TooLong);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
