//! Bytes into lines, with bounded memory.

use std::io;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The next stretch of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its line end; may be empty.
    Text(BytesMut),
    /// Longer than the limit; dropped as it came.
    TooLong,
    /// There is no more input.
    End,
}

/// Reads lines of at most `limit` bytes.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    limit: usize,
    buffer: BytesMut,
    /// Number of bytes of `buffer` that are known to hold no line end.
    searched: usize,
    /// The rest of the current line belongs to one that was too long.
    discarding: bool,
}

/// Room for one read: a pipe's usual capacity.
const READ_BYTES: usize = 64 << 10;

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            buffer: BytesMut::new(),
            searched: 0,
            discarding: false,
        }
    }

    /// The next line; a last line without its end counts. Safe to drop half-way: what was read stays for the next call.
    pub async fn next(&mut self) -> io::Result<Line> {
        loop {
            if let Some(line) = self.buffered_line() {
                return Ok(line);
            }
            if self.read_more().await? == 0 {
                let rest = self.take_rest();
                return Ok(if rest.is_empty() || self.discarding {
                    Line::End
                } else {
                    Line::Text(rest)
                });
            }
        }
    }

    /// The same for text that may be cut anywhere: a line that is too long comes in pieces. `None` at the end.
    pub async fn next_piece(&mut self) -> io::Result<Option<BytesMut>> {
        loop {
            if let Some(end) = self.line_end() {
                return Ok(Some(self.take_line(end)));
            }
            if self.buffer.len() > self.limit || self.read_more().await? == 0 {
                return Ok(Some(self.take_rest()).filter(|rest| !rest.is_empty()));
            }
        }
    }

    /// A line that is already here. Every call makes progress or leaves less than `limit` bytes.
    fn buffered_line(&mut self) -> Option<Line> {
        loop {
            match self.line_end() {
                Some(end) if self.discarding => {
                    self.buffer.advance(end + 1);
                    self.searched = 0;
                    self.discarding = false;
                }
                Some(end) => {
                    let line = self.take_line(end);
                    return Some(if end > self.limit {
                        Line::TooLong
                    } else {
                        Line::Text(line)
                    });
                }
                None if self.searched <= self.limit && !self.discarding => return None,
                None => {
                    // A fresh buffer, so that one huge line does not hold its memory for ever.
                    self.buffer = BytesMut::new();
                    self.searched = 0;
                    let first_notice = !std::mem::replace(&mut self.discarding, true);
                    return first_notice.then_some(Line::TooLong);
                }
            }
        }
    }

    /// The position of the next line feed in the buffer.
    fn line_end(&mut self) -> Option<usize> {
        let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
        let end = found.map(|found| self.searched + found);
        self.searched = end.unwrap_or(self.buffer.len());
        end
    }

    fn take_line(&mut self, end: usize) -> BytesMut {
        let mut line = self.buffer.split_to(end + 1);
        self.searched = 0;
        let carriage_return = usize::from(line[..end].last() == Some(&b'\r'));
        line.truncate(end - carriage_return);
        line
    }

    fn take_rest(&mut self) -> BytesMut {
        self.searched = 0;
        self.buffer.split()
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ_BYTES.max(self.buffer.len() / 2));
        self.input.read_buf(&mut self.buffer).await
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
