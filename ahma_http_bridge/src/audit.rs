//! The audit trail: JSON lines, each carrying the hash of the one before, so that a changed, missing or
//! inserted line shows. What the newest file lost at its end does not: nothing comes after it that could tell.
//!
//! Lines are written by a thread of their own, in order. When it cannot keep up, lines are dropped rather
//! than requests held up, and a line says how many. Without a file, session events go to the log.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::child::Verdict;
use crate::redact::Redactor;

/// A file that grew over this is set aside with a number.
const ROTATE_BYTES: u64 = 64 << 20;
const KEPT_FILES: u32 = 8;
/// Lines waiting for the disk.
const MAX_WAITING: usize = 8192;
/// A disk that hangs must not keep the bridge from ending.
const SETTLE_PATIENCE: Duration = Duration::from_secs(2);
/// Arguments longer than this are cut: the trail says what was done, it does not keep the data.
const MAX_ARGUMENTS_BYTES: usize = 1024;
/// What the first line of a trail refers back to.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Debug)]
pub(crate) struct Audit {
    orders: Option<mpsc::SyncSender<Order>>,
    writer: std::sync::Mutex<Option<JoinHandle<()>>>,
    dropped: AtomicU64,
}

/// What the writing thread is told.
#[derive(Debug)]
enum Order {
    Write(Map<String, Value>),
    /// Say so when everything before this is written.
    Settle(mpsc::SyncSender<()>),
}

impl Audit {
    pub(crate) fn to_log() -> Self {
        Self {
            orders: None,
            writer: std::sync::Mutex::new(None),
            dropped: AtomicU64::new(0),
        }
    }

    pub(crate) fn to_file(path: &Path) -> std::io::Result<Self> {
        let mut trail = Trail::open(path)?;
        let (orders, waiting) = mpsc::sync_channel(MAX_WAITING);
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                while let Ok(first) = waiting.recv() {
                    let written = std::iter::once(first)
                        .chain(waiting.try_iter())
                        .try_for_each(|order| match order {
                            Order::Write(line) => trail.write(line),
                            Order::Settle(done) => {
                                let flushed = trail.flush();
                                // Nobody may be waiting any more.
                                let _ = done.try_send(());
                                flushed
                            }
                        })
                        .and_then(|()| trail.flush());
                    if let Err(error) = written {
                        tracing::error!(%error, "the audit trail cannot be written");
                    }
                }
            })?;
        Ok(Self {
            orders: Some(orders),
            writer: std::sync::Mutex::new(Some(writer)),
            dropped: AtomicU64::new(0),
        })
    }

    /// Waits, not for ever, until everything recorded so far is written. Blocks.
    pub(crate) fn settle(&self) {
        let (done, settled) = mpsc::sync_channel(1);
        if let Some(orders) = &self.orders
            && orders.send(Order::Settle(done)).is_ok()
        {
            let _ = settled.recv_timeout(SETTLE_PATIENCE);
        }
    }

    /// Whether calls are recorded, which costs reading their arguments.
    pub(crate) fn records_calls(&self) -> bool {
        self.orders.is_some()
    }

    pub(crate) fn record(&self, event: &'static str, fields: Value) {
        let Some(orders) = &self.orders else {
            tracing::info!(target: "audit", event, %fields);
            return;
        };
        let mut line = Map::new();
        let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        line.insert("time".to_owned(), now.into());
        line.insert("event".to_owned(), event.into());
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            line.insert("dropped_before".to_owned(), dropped.into());
        }
        if orders.try_send(Order::Write(line)).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.orders = None;
        if let Ok(mut writer) = self.writer.lock()
            && let Some(writer) = writer.take()
        {
            // It ends when it has written what was waiting.
            let _ = writer.join();
        }
    }
}

/// A call that is being answered. Its line is written when it is over, however that comes.
#[derive(Debug)]
pub(crate) struct CallRecord {
    pub(crate) audit: std::sync::Arc<Audit>,
    pub(crate) fields: Map<String, Value>,
    pub(crate) started: Instant,
}

impl CallRecord {
    pub(crate) fn finish(mut self, verdict: Verdict, bytes: usize) {
        let outcome = match verdict {
            Verdict::Result => "answered".to_owned(),
            Verdict::RpcError(code) => format!("error {code}"),
            Verdict::Failed(failure) => failure.to_string(),
            Verdict::Refused(status) => format!("refused {status}"),
        };
        self.fields.insert("outcome".to_owned(), outcome.into());
        self.fields.insert("bytes".to_owned(), bytes.into());
        self.fields.insert(
            "duration_ms".to_owned(),
            (duration_ms(self.started.elapsed())).into(),
        );
        self.audit.record("call", Value::Object(self.fields));
    }
}

fn duration_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
    let end = (0..=MAX_ARGUMENTS_BYTES)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    json!({ "cut": text[..end], "bytes": text.len() })
}

/// The file behind a trail.
struct Trail {
    path: PathBuf,
    file: BufWriter<File>,
    size: u64,
    /// The hash of the line written last.
    last: String,
}

impl Trail {
    fn open(path: &Path) -> std::io::Result<Self> {
        let last = match last_hash(path)? {
            Some(last) => last,
            None => origin(&numbered(path, 1))?,
        };
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            size,
            last,
        })
    }

    fn write(&mut self, mut line: Map<String, Value>) -> std::io::Result<()> {
        if self.size > ROTATE_BYTES {
            self.rotate()?;
        }
        line.insert("previous".to_owned(), self.last.clone().into());
        let text = Value::Object(line).to_string();
        self.last = hash_of(&text);
        writeln!(self.file, "{text}")?;
        self.size += text.len() as u64 + 1;
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }

    /// The new file goes on with the chain of the old one.
    fn rotate(&mut self) -> std::io::Result<()> {
        self.file.flush()?;
        let numbered = |number: u32| numbered(&self.path, number);
        for number in (1..KEPT_FILES).rev() {
            // A number that is not there yet is no error.
            let _ = std::fs::rename(numbered(number), numbered(number + 1));
        }
        std::fs::rename(&self.path, numbered(1))?;
        self.file = BufWriter::new(append_to(&self.path)?);
        self.size = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The file that `path` becomes when it is set aside for the `number`th time.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The file that was set aside before `path`, and how many times `path` itself was.
fn predecessor(path: &Path) -> (PathBuf, u32) {
    let newest = || (numbered(path, 1), 0);
    let extension = path.extension().and_then(OsStr::to_str);
    let number = extension.and_then(|extension| extension.parse::<u32>().ok());
    match number {
        // A trail may have such a name of its own.
        Some(number) if (1..=KEPT_FILES).contains(&number) && !newest().0.exists() => {
            (numbered(&path.with_extension(""), number + 1), number)
        }
        _ => newest(),
    }
}

/// What the first line after `before` refers back to.
fn origin(before: &Path) -> std::io::Result<String> {
    Ok(last_hash(before)?.unwrap_or_else(|| GENESIS.to_owned()))
}

/// The hash of the last line; `None` if there is none.
fn last_hash(path: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut last = None;
    for line in BufReader::new(file).lines() {
        last = Some(line?);
    }
    Ok(last.as_deref().map(hash_of))
}

fn hash_of(line: &str) -> String {
    Sha256::digest(line.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What is wrong with a trail.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("it is empty, so everything in it may have been removed")]
    Empty,
    #[error("line 1 does not follow from {before}: lines were removed or added there, or line 1 was changed")]
    Beginning { before: String },
    #[error(
        "line {line} does not follow from line {}: one of the two was changed, or a line was removed or added there",
        line - 1
    )]
    Broken { line: usize },
    #[error("line {line} is not an audit line: {reason}")]
    Unreadable { line: usize, reason: String },
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl AuditError {
    /// How many lines from the beginning still hang together.
    pub fn intact_lines(&self) -> usize {
        match self {
            // What the last of them says may have been changed: the line that would tell is the broken one.
            Self::Broken { line } => line.saturating_sub(2),
            Self::Unreadable { line, .. } => line.saturating_sub(2),
            Self::Empty | Self::Beginning { .. } | Self::Io(_) => 0,
        }
    }
}

/// Checks a file of a trail and gives back its number of lines.
///
/// Its first line must begin a trail, or follow from the last line of the file set aside before it. Of the oldest file
/// that is kept nobody can tell: the one before it is gone.
pub fn verify_audit(path: &Path) -> Result<usize, AuditError> {
    let (before, number) = predecessor(path);
    let begins_anywhere = number == KEPT_FILES && !before.exists();
    let mut expected = origin(&before)?;
    let mut count = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let text = line?;
        count += 1;
        let value: Value = serde_json::from_str(&text).map_err(|error| AuditError::Unreadable {
            line: count,
            reason: error.to_string(),
        })?;
        let follows = value["previous"] == expected.as_str();
        match count {
            1 if !follows && !begins_anywhere => {
                let before = match before.exists() {
                    true => before.display().to_string(),
                    false => "the beginning of a trail".to_owned(),
                };
                return Err(AuditError::Beginning { before });
            }
            2.. if !follows => return Err(AuditError::Broken { line: count }),
            _ => expected = hash_of(&text),
        }
    }
    match count {
        0 => Err(AuditError::Empty),
        count => Ok(count),
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod audit_tests;
