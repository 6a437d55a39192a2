//! A recording of a command's output with streams and times. `ahma_validate --sample` reads it.
//!
//! ```text
//! # cmd: curl -# http://localhost/big.bin   [pipes]
//! +0.22 err| \r
//! +0.22 err| ########      54.9%
//! # exit 0 after 1.42s
//! ```

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    jail::ExitStatus,
    observe::StreamName,
    operation::{Outcome, OutputTap},
};

/// Writes a recording while it listens.
#[derive(Debug)]
pub(super) struct Recording<W> {
    started: Instant,
    state: Mutex<RecordingState<W>>,
}

#[derive(Debug)]
struct RecordingState<W> {
    to: W,
    /// For each stream, the first bytes of a character that is not complete yet.
    unfinished: [Vec<u8>; 2],
    /// The first reason why it cannot be written.
    failure: Option<io::Error>,
}

impl<W: Write> Recording<W> {
    pub(super) fn begin(to: W, command: &str) -> Self {
        let mut state = RecordingState {
            to,
            unfinished: Default::default(),
            failure: None,
        };
        state.line(&format!("# cmd: {command}   [pipes]"));
        Self {
            started: Instant::now(),
            state: Mutex::new(state),
        }
    }

    /// Writes how the command ended.
    pub(super) fn end(&self, outcome: &Outcome) -> io::Result<()> {
        let how = match outcome.exit {
            Some(ExitStatus::Code(code)) => format!("exit {code}"),
            Some(ExitStatus::Signal(signal)) => format!("signal {signal}"),
            None => "no exit".to_owned(),
        };
        let seconds = outcome.duration.as_secs_f64();
        let mut state = self.state.lock();
        state.line(&format!("# {how} after {seconds:.2}s"));
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

impl<W: Write + std::fmt::Debug + Send> OutputTap for Recording<W> {
    fn take(&self, source: StreamName, bytes: &[u8]) {
        self.state.lock().take(source, bytes, self.started.elapsed());
    }
}

impl<W: Write> RecordingState<W> {
    fn take(&mut self, source: StreamName, bytes: &[u8], at: Duration) {
        let (index, name) = match source {
            StreamName::Stdout => (0, "out"),
            StreamName::Stderr => (1, "err"),
        };
        let mut text = std::mem::take(&mut self.unfinished[index]);
        text.extend_from_slice(bytes);
        if let Err(error) = std::str::from_utf8(&text)
            && error.error_len().is_none()
        {
            self.unfinished[index] = text.split_off(error.valid_up_to());
        }
        for piece in String::from_utf8_lossy(&text).split_inclusive('\n') {
            let seconds = at.as_secs_f64();
            self.line(&format!("+{seconds:.2} {name}| {}", escaped(piece)));
        }
    }

    fn line(&mut self, line: &str) {
        if self.failure.is_none() {
            self.failure = writeln!(self.to, "{line}").err();
        }
    }
}

/// Escapes characters that would end a line of the recording or control a terminal.
fn escaped(piece: &str) -> String {
    piece
        .replace('\r', "\\r")
        .replace('\n', "\\n")
        .replace('\x1b', "\\x1b")
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
