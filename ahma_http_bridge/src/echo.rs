//! The debug echo: every message between bridge and child, readable, on the terminal.
//!
//! Credentials are replaced. Apart from that, what is not JSON is printed as it is. A terminal that is not read must not hold
//! the bridge up, so a thread prints; what it cannot keep up with is left out, and counted.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ahma_common::variables;
use serde_json::Value;

use crate::harmless::harmless_pretty_json;
use crate::redact::Redactor;

/// Bytes that may wait to be printed. A single longer message waits alone.
const MAX_WAITING_BYTES: usize = 16 << 20;
const MAX_WAITING: usize = 4096;
/// Time that the end waits for the rest.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints messages to standard error.
#[derive(Debug, Clone)]
pub(crate) struct Echo {
    coloured: bool,
    redactor: Arc<Redactor>,
    printer: Arc<Printer>,
}

#[derive(Debug)]
struct Printer {
    texts: mpsc::SyncSender<String>,
    waiting_bytes: Arc<AtomicUsize>,
    left_out: AtomicU64,
}

const BLUE: &str = "\x1b[34m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

impl Echo {
    pub(crate) fn to_stderr(redactor: Arc<Redactor>) -> Self {
        let coloured = std::io::stderr().is_terminal() && !variables::no_color();
        Self {
            coloured,
            redactor,
            printer: Arc::new(Printer::to(std::io::stderr())),
        }
    }

    /// Blocks until everything is printed, for a bounded time.
    pub(crate) fn settle(&self) {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        while self.printer.waiting_bytes.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn sent(&self, line: &[u8]) {
        self.print(BLUE, "→ STDIN:", line);
    }

    pub(crate) fn received(&self, line: &[u8]) {
        self.print(GREEN, "← STDOUT:", line);
    }

    pub(crate) fn complained(&self, line: &[u8]) {
        self.print(YELLOW, "⚠ STDERR:", line);
    }

    fn print(&self, colour: &str, prefix: &str, line: &[u8]) {
        self.printer
            .print(line.len(), || self.render(colour, prefix, line));
    }

    fn render(&self, colour: &str, prefix: &str, line: &[u8]) -> String {
        let body = match serde_json::from_slice::<Value>(line) {
            Ok(mut value) if value.is_object() || value.is_array() => {
                self.redactor.redact(&mut value);
                harmless_pretty_json(&value)
            }
            _ => {
                let text = String::from_utf8_lossy(line);
                self.redactor
                    .scrub(text.trim_end_matches(['\r', '\n']))
                    .into_owned()
            }
        };
        if self.coloured {
            format!("{colour}{prefix}{PLAIN}\n{body}\n")
        } else {
            format!("{prefix}\n{body}\n")
        }
    }
}

impl Printer {
    fn to(mut writer: impl Write + Send + 'static) -> Self {
        let (texts, waiting) = mpsc::sync_channel::<String>(MAX_WAITING);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let printed = Arc::clone(&waiting_bytes);
        let thread = std::thread::Builder::new().name("echo".to_owned());
        let started = thread.spawn(move || {
            for text in waiting {
                // A closed terminal must not stop the bridge.
                let _ = writer.write_all(text.as_bytes());
                printed.fetch_sub(text.len(), Ordering::Relaxed);
            }
        });
        if let Err(error) = started {
            tracing::error!(%error, "messages cannot be printed");
        }
        Self {
            texts,
            waiting_bytes,
            left_out: AtomicU64::new(0),
        }
    }

    /// Prints a text that is made of so many bytes, unless too much waits already.
    fn print(&self, bytes: usize, render: impl FnOnce() -> String) {
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting > 0 && waiting + bytes > MAX_WAITING_BYTES {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let text = match left_out {
            0 => render(),
            _ => format!(
                "({left_out} messages are not shown here: there was no reader)\n{}",
                render()
            ),
        };
        let bytes = text.len();
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.texts.try_send(text).is_err() {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.left_out.fetch_add(left_out + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "echo_tests.rs"]
mod tests;
