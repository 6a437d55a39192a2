//! Following an output log while it grows, without ever waiting for the disk.

use super::OutputLog;

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
            let inside = bytes
                .iter()
                .take(3)
                .take_while(|byte| is_continuation(**byte))
                .count();
            bytes = &bytes[inside..];
            start += inside as u64;
        }
        if !is_complete {
            bytes = &bytes[..bytes.len() - unfinished(bytes)];
        }
        NewOutput {
            text: String::from_utf8_lossy(bytes).into_owned(),
            skipped_bytes: start.saturating_sub(from),
            next: start + bytes.len() as u64,
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Number of bytes at the end that are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let near_end = &bytes[bytes.len().saturating_sub(3)..];
    let Some(lead) = near_end.iter().rposition(|byte| !is_continuation(*byte)) else {
        return 0;
    };
    let needed = match near_end[lead] {
        0b1100_0000..=0b1101_1111 => 2,
        0b1110_0000..=0b1110_1111 => 3,
        0b1111_0000..=0b1111_0111 => 4,
        _ => 1,
    };
    let present = near_end.len() - lead;
    if present < needed { present } else { 0 }
}

#[cfg(test)]
#[path = "tail_cursor_tests.rs"]
mod tests;
