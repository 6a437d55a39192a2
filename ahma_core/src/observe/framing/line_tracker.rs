//! The newest line of any output, for tools whose file has no rules.

use memchr::memchr;

use super::LineReader;

/// Only this much of the end of a chunk is looked at, so the cost does not depend on how much a tool prints.
const WINDOW_BYTES: usize = 8 * 1024;

/// Limit on a line shown as a status.
const MAX_LINE_BYTES: usize = 1024;

/// Remembers the newest line that is not blank. Holds a few kilobytes, whatever it is fed.
#[derive(Debug)]
pub struct LineTracker {
    reader: LineReader,
    newest_finished: Option<String>,
}

impl LineTracker {
    pub fn new() -> Self {
        Self {
            reader: LineReader::new(MAX_LINE_BYTES),
            newest_finished: None,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        if bytes.len() > WINDOW_BYTES {
            // What stands before the window is older than what stands in it. Starting behind a line end keeps a
            // line or an escape sequence from being seen by half; without one, it is all one line.
            let window = &bytes[bytes.len() - WINDOW_BYTES..];
            if let Some(line_end) = memchr(b'\n', window) {
                self.reader = LineReader::new(MAX_LINE_BYTES);
                input = &window[line_end + 1..];
            }
        }
        while let Some(line) = self.reader.next_line(&mut input) {
            self.newest_finished = Some(line.trim_end().to_owned());
        }
    }

    /// The newest line: the one being written if there is one, else the last that ended.
    pub fn newest(&self) -> Option<String> {
        match self.reader.unfinished() {
            Some(line) => Some(line.trim_end().to_owned()),
            None => self.newest_finished.clone(),
        }
    }
}

impl Default for LineTracker {
    fn default() -> Self {
        Self::new()
    }
}
