//! The audit trail: JSON lines, each carrying the hash of the one before, so that a changed, missing or
//! inserted line shows.
//!
//! Lines are written by a thread of their own, in order. When it cannot keep up, lines are dropped rather
//! than requests held up, and a line says how many. Without a file, session events go to the log.

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
use crate::echo::redact;

/// A file that grew over this is set aside with a number.
const ROTATE_BYTES: u64 = 64 << 20;
const KEPT_FILES: u32 = 8;
/// Lines waiting for the disk.
const MAX_WAITING: usize = 8192;
/// Arguments longer than this are cut: the trail says what was done, it does not keep the data.
const MAX_ARGUMENTS_BYTES: usize = 1024;
/// What the first line of a trail refers back to.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Debug)]
pub(crate) struct Audit {
    lines: Option<mpsc::SyncSender<Map<String, Value>>>,
    writer: std::sync::Mutex<Option<JoinHandle<()>>>,
    dropped: AtomicU64,
}

impl Audit {
    pub(crate) fn to_log() -> Self {
        Self {
            lines: None,
            writer: std::sync::Mutex::new(None),
            dropped: AtomicU64::new(0),
        }
    }

    pub(crate) fn to_file(path: &Path) -> std::io::Result<Self> {
        let mut trail = Trail::open(path)?;
        let (lines, waiting) = mpsc::sync_channel::<Map<String, Value>>(MAX_WAITING);
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                while let Ok(first) = waiting.recv() {
                    let batch = std::iter::once(first).chain(waiting.try_iter());
                    let written = batch
                        .into_iter()
                        .try_for_each(|line| trail.write(line))
                        .and_then(|()| trail.flush());
                    if let Err(error) = written {
                        tracing::error!(%error, "the audit trail cannot be written");
                    }
                }
            })?;
        Ok(Self {
            lines: Some(lines),
            writer: std::sync::Mutex::new(Some(writer)),
            dropped: AtomicU64::new(0),
        })
    }

    /// Whether calls are recorded, which costs reading their arguments.
    pub(crate) fn records_calls(&self) -> bool {
        self.lines.is_some()
    }

    pub(crate) fn record(&self, event: &'static str, fields: Value) {
        let Some(lines) = &self.lines else {
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
        if lines.try_send(line).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.lines = None;
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
pub(crate) fn shown_arguments(arguments: &str) -> Value {
    let Ok(mut value) = serde_json::from_str::<Value>(arguments) else {
        return Value::Null;
    };
    redact(&mut value);
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
        let last = match File::open(path) {
            Ok(file) => last_hash(file)?.unwrap_or_else(|| GENESIS.to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => GENESIS.to_owned(),
            Err(error) => return Err(error),
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
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
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

fn last_hash(file: File) -> std::io::Result<Option<String>> {
    let mut last = None;
    for line in BufReader::new(file).lines() {
        last = Some(hash_of(&line?));
    }
    Ok(last)
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
    #[error(
        "line {line} does not follow from the line before it: it or its predecessor was changed, removed or added"
    )]
    Broken { line: usize },
    #[error("line {line} is not an audit line: {reason}")]
    Unreadable { line: usize, reason: String },
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Checks a trail and gives back its number of lines. The first line of a rotated file refers to the file
/// before it, which is not checked.
pub fn verify_audit(path: &Path) -> Result<usize, AuditError> {
    let mut expected: Option<String> = None;
    let mut count = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let text = line?;
        count += 1;
        let value: Value = serde_json::from_str(&text).map_err(|error| AuditError::Unreadable {
            line: count,
            reason: error.to_string(),
        })?;
        if expected
            .as_deref()
            .is_some_and(|expected| value["previous"] != expected)
        {
            return Err(AuditError::Broken { line: count });
        }
        expected = Some(hash_of(&text));
    }
    Ok(count)
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod audit_tests;
