//! One log of two streams.
//!
//! Both are taken in as they come, but pieces of one are put between lines of the other, never into them. So the
//! beginning of a line waits for its end, unless it takes too long: then it is shown, and is broken only if the other
//! stream prints meanwhile.
//!
//! A carriage return ends a state of a line that is redrawn. What comes after it may be anything: folded, as readers see
//! it, only the last state is left.

use std::{future::pending, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{observe::StreamName, shell::Stdio};

/// An unfinished line is shown after this time. Longer than a program takes between two pieces of a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Longer lines are not waited for.
const MAX_HELD: usize = 64 << 10;

/// Puts two streams together. Holds at most about [`MAX_HELD`] bytes of each.
#[derive(Debug, Default)]
pub(super) struct LineMerge {
    /// There are two streams. One is passed on as it is.
    is_needed: bool,
    stdout: Held,
    stderr: Held,
    /// The stream whose unfinished line was shown last. Nothing of it is held.
    shown_unfinished: Option<StreamName>,
}

/// The unfinished line of a stream.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    since: Option<Instant>,
}

impl LineMerge {
    pub(super) fn of(stdio: Stdio) -> Self {
        Self {
            is_needed: stdio == Stdio::Separate,
            ..Self::default()
        }
    }

    /// Takes in what a stream has printed, and gives `write` what can be shown of it.
    pub(super) fn feed(
        &mut self,
        source: StreamName,
        bytes: &[u8],
        now: Instant,
        write: &mut dyn FnMut(&[u8]),
    ) {
        if !self.is_needed {
            return write(bytes);
        }
        let continues = self.shown_unfinished == Some(source);
        let held = self.held(source);
        // A carriage return at the end of what is held turns out here.
        held.bytes.extend_from_slice(bytes);
        let border = border(&held.bytes);
        let is_long = held.bytes.len() - border > MAX_HELD;
        let shown = if is_long || (continues && border == 0) {
            held.bytes.len()
        } else {
            border
        };
        let rest = held.bytes.split_off(shown);
        let shown = std::mem::replace(&mut held.bytes, rest);
        held.since = match held.since {
            _ if held.bytes.is_empty() => None,
            Some(since) if border == 0 => Some(since),
            _ => Some(now),
        };
        if !shown.is_empty() {
            let is_finished = shown.len() == border;
            self.show(source, &shown, is_finished, write);
        }
    }

    /// Waits until [`Self::tick`] has something to do. Never returns if nothing is held.
    pub(super) async fn due(&self) {
        let since = self.stdout.since.into_iter().chain(self.stderr.since);
        match since.min() {
            Some(since) => sleep_until(since + PATIENCE).await,
            None => pending().await,
        }
    }

    /// Shows unfinished lines that have waited for long enough.
    pub(super) fn tick(&mut self, now: Instant, write: &mut dyn FnMut(&[u8])) {
        self.show_held(|since| since + PATIENCE <= now, write);
    }

    /// Shows what is left when both streams have ended.
    pub(super) fn finish(&mut self, write: &mut dyn FnMut(&[u8])) {
        self.show_held(|_| true, write);
        self.shown_unfinished = None;
    }

    fn show_held(&mut self, is_due: impl Fn(Instant) -> bool, write: &mut dyn FnMut(&[u8])) {
        for source in [StreamName::Stdout, StreamName::Stderr] {
            let held = self.held(source);
            if held.since.is_some_and(&is_due) {
                let bytes = std::mem::take(held).bytes;
                self.show(source, &bytes, false, write);
            }
        }
    }

    fn show(&mut self, source: StreamName, bytes: &[u8], is_finished: bool, write: &mut dyn FnMut(&[u8])) {
        if self.shown_unfinished.is_some_and(|shown| shown != source) {
            write(b"\n");
        }
        write(bytes);
        self.shown_unfinished = (!is_finished).then_some(source);
    }

    fn held(&mut self, source: StreamName) -> &mut Held {
        match source {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        }
    }
}

/// End of the last line, or of the last state of one that is redrawn. A carriage return at the very end may belong to
/// the end of a line.
fn border(bytes: &[u8]) -> usize {
    let body = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    memchr::memrchr2(b'\n', b'\r', body).map_or(0, |end| end + 1)
}

#[cfg(test)]
#[path = "line_merge_tests.rs"]
mod tests;
