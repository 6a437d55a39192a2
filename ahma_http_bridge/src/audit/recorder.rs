//! Records on their way to the audit trail.
//!
//! Lines are written by a thread of their own, in order. When it cannot keep up, lines are dropped rather
//! than requests held up, and a line says how many. Without a file, session events go to the log. Whatever a client can put
//! into a line is freed of credentials and cut here, in one place.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ahma_common::words::fitting;
use serde_json::{Map, Value, json};

use super::trail::{Trail, line};
use crate::harmless::harmless_json;
use crate::redact::Redactor;

/// Lines waiting for the disk.
const MAX_WAITING: usize = 8192;
/// A disk that hangs must not keep the bridge from ending.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between looks at a slow disk.
const SETTLE_TICK: Duration = Duration::from_millis(5);
/// Arguments longer than this are cut: the trail says what was done, it does not keep the data.
const MAX_ARGUMENTS_BYTES: usize = 1024;
/// The same for any other text of a client, such as a path or a method, which tell nothing at that length. Refused
/// clients cause lines, too, and long ones would soon push the others out of the files that are kept.
const MAX_TEXT_BYTES: usize = 512;

#[derive(Debug)]
pub(crate) struct Audit {
    /// `None` if there is no file.
    writer: Option<Writer>,
    dropped: AtomicU64,
    redactor: Arc<Redactor>,
}

/// The thread that writes the lines.
#[derive(Debug)]
struct Writer {
    orders: mpsc::SyncSender<Order>,
    thread: JoinHandle<()>,
}

/// Messages to the writing thread.
#[derive(Debug)]
enum Order {
    Write {
        line: Map<String, Value>,
        /// Lines that were dropped since the one before.
        dropped: u64,
    },
    /// Confirm that everything before this is written.
    Settle(mpsc::SyncSender<()>),
}

impl Audit {
    pub(crate) fn to_log(redactor: Arc<Redactor>) -> Self {
        Self::with(None, redactor)
    }

    pub(crate) fn to_file(path: &Path, redactor: Arc<Redactor>) -> std::io::Result<Self> {
        Self::onto(Trail::open(path)?, redactor)
    }

    fn onto(mut trail: Trail, redactor: Arc<Redactor>) -> std::io::Result<Self> {
        let (orders, waiting) = mpsc::sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                for order in waiting {
                    match order {
                        Order::Write { line, dropped } => write(&mut trail, line, dropped),
                        // The waiting task may have given up.
                        Order::Settle(done) => drop(done.try_send(())),
                    }
                }
            })?;
        Ok(Self::with(Some(Writer { orders, thread }), redactor))
    }

    fn with(writer: Option<Writer>, redactor: Arc<Redactor>) -> Self {
        Self {
            writer,
            dropped: AtomicU64::new(0),
            redactor,
        }
    }

    /// Blocks until everything recorded so far is written, for a bounded time.
    pub(crate) fn settle(&self) {
        let Some(Writer { orders, .. }) = &self.writer else {
            return;
        };
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        let (done, settled) = mpsc::sync_channel(1);
        let mut order = Order::Settle(done);
        // A queue that is full stays so if the disk hangs.
        while let Err(mpsc::TrySendError::Full(refused)) = orders.try_send(order) {
            if Instant::now() >= deadline {
                return;
            }
            order = refused;
            std::thread::sleep(SETTLE_TICK);
        }
        let _ = settled.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }

    /// True if calls are recorded, which costs reading their arguments.
    pub(crate) fn records_calls(&self) -> bool {
        self.writer.is_some()
    }

    pub(crate) fn record(&self, event: &'static str, mut fields: Value) {
        self.redactor.redact(&mut fields);
        cut_texts(&mut fields);
        let Some(Writer { orders, .. }) = &self.writer else {
            let fields = harmless_json(&fields);
            tracing::info!(target: "audit", event, %fields);
            return;
        };
        let line = line(event, fields);
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if orders.try_send(Order::Write { line, dropped }).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

/// Writes a line. Only the first failure and the recovery go to the log.
fn write(trail: &mut Trail, line: Map<String, Value>, dropped: u64) {
    let was_failing = trail.is_failing();
    match trail.write(line, dropped) {
        Err(error) if !was_failing => {
            tracing::error!(%error, "the audit trail cannot be written; its next line will say how many are missing");
        }
        Ok(()) if was_failing => tracing::warn!("the audit trail is written again"),
        Ok(()) | Err(_) => {}
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if let Some(Writer { orders, thread }) = self.writer.take() {
            drop(orders);
            // It ends when it has written what was waiting, unless the disk hangs.
            let deadline = Instant::now() + SETTLE_TIMEOUT;
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(SETTLE_TICK);
            }
        }
    }
}

/// A call that is being answered. Its line is written when it is over, however that comes.
#[derive(Debug)]
pub(crate) struct CallRecord {
    pub(crate) audit: Arc<Audit>,
    pub(crate) fields: Map<String, Value>,
    pub(crate) started: Instant,
}

impl CallRecord {
    pub(crate) fn finish(mut self, outcome: String, bytes: usize) {
        self.fields.insert("outcome".to_owned(), outcome.into());
        self.fields.insert("bytes".to_owned(), bytes.into());
        let duration = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.fields.insert("duration_ms".to_owned(), duration.into());
        self.audit.record("call", Value::Object(self.fields));
    }
}

/// Cuts the texts among these fields. The others are of our own making, or cut already.
fn cut_texts(fields: &mut Value) {
    for value in fields.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Value::String(text) = value
            && text.len() > MAX_TEXT_BYTES
        {
            *text = format!("{}… ({} bytes)", fitting(text, MAX_TEXT_BYTES), text.len());
        }
    }
}

/// The arguments of a call as they may be written down.
pub(crate) fn shown_arguments(arguments: &str, redactor: &Redactor) -> Value {
    let Ok(mut value) = serde_json::from_str::<Value>(arguments) else {
        return Value::Null;
    };
    redactor.redact(&mut value);
    let text = value.to_string();
    if text.len() <= MAX_ARGUMENTS_BYTES {
        return value;
    }
    json!({ "cut": fitting(&text, MAX_ARGUMENTS_BYTES), "bytes": text.len() })
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
