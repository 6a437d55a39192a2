//! Cuts a child's standard output into lines, within a bound.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// One message may be this long. A child that goes on without a line feed is not speaking MCP.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// Room asked for before each read: a pipe's usual capacity.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Inbox<R> {
    source: R,
    buffer: BytesMut,
    /// Bytes already searched for a line feed.
    searched: usize,
    max_line_bytes: usize,
}

impl<R: AsyncRead + Unpin> Inbox<R> {
    pub(crate) fn new(source: R, max_line_bytes: usize) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            searched: 0,
            max_line_bytes,
        }
    }

    /// The next line without its line feed; `None` at the end. An unfinished last line is dropped: it is no message.
    pub(crate) async fn next_line(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > self.max_line_bytes {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a line is longer than {} bytes", self.max_line_bytes),
                ));
            }
            if self.read_more().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The same for text that may be cut anywhere: a line that is too long comes in pieces, an unfinished one at the end.
    pub(crate) async fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > self.max_line_bytes || self.read_more().await? == 0 {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + at + 1);
        self.searched = 0;
        line.truncate(line.len() - 1);
        Some(line.freeze())
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ_BYTES.max(self.buffer.len() / 2));
        self.source.read_buf(&mut self.buffer).await
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod inbox_tests;
