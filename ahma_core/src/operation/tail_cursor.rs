//! Following an output log while it grows, without ever waiting for the disk.

use super::{OutputLog, excerpt::character_start};
use crate::observe::whole_characters;

/// Output after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutput {
    /// Decoded lossily. A character whose last bytes have not come yet is left to the next time.
    pub text: String,
    /// Bytes skipped, because there was too much output.
    pub skipped_bytes: u64,
    /// The cursor to continue from.
    pub next: u64,
}

impl OutputLog {
    /// The newest output after byte `from`, at most `max_bytes` of it. `is_complete` says that nothing more will come.
    pub fn since(&self, from: u64, max_bytes: usize, is_complete: bool) -> NewOutput {
        let (newest, mut start) = self.newest_after(from, max_bytes);
        let mut bytes = &newest[..];
        if start > from {
            let inside = character_start(bytes, 0);
            bytes = &bytes[inside..];
            start += inside as u64;
        }
        if !is_complete {
            bytes = whole_characters(bytes);
        }
        NewOutput {
            text: String::from_utf8_lossy(bytes).into_owned(),
            skipped_bytes: start.saturating_sub(from),
            next: start + bytes.len() as u64,
        }
    }
}

#[cfg(test)]
#[path = "tail_cursor_tests.rs"]
mod tests;
