//! Everything an operation printed.
//!
//! A short output lives in memory. One that outgrows `result_bytes` goes to a spool file, and only its head, its tail
//! and a sparse index of its lines stay in memory, so that results and progress never wait for the disk. Past the quota,
//! bytes are counted and dropped, except for the tail: the end of an output is where the error is.

use std::{
    fs::File,
    io::{self, Write},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::observe::LineTracker;

use super::{
    Excerpt, ExcerptFocus, OperationId, excerpt,
    log_view::{LogStore, LogView},
    spool::Spool,
    spool_file::{SpoolFile, SpoolReader},
};

/// Distance of two entries in the line index. Finding a line means scanning at most this much.
pub(super) const BLOCK_BYTES: u64 = 256 << 10;

/// Bytes at the end that are searched for the newest line, and bytes of it that are shown.
const NEWEST_BYTES: usize = 4 << 10;
const NEWEST_LINE_BYTES: usize = 200;

/// The output of an operation so far; readable at any time, also while it grows. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OutputLog {
    id: OperationId,
    result_bytes: usize,
    kept: Arc<Mutex<LogState>>,
}

/// Output that was printed but is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub bytes: u64,
    pub cause: LossCause,
}

/// Reason why output is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LossCause {
    /// The operation printed more than its quota.
    Quota,
    /// The spool file could not be written; says why.
    Storage(String),
}

/// Parts of an output, as they are to be written down.
#[derive(Debug, Clone)]
pub(crate) struct StoredParts {
    /// Holds the beginning, if memory does not.
    pub(crate) file: Option<Arc<SpoolFile>>,
    /// All of it, if there is no file.
    pub(crate) head: Vec<u8>,
    /// The end, if it is over the quota.
    pub(crate) tail: Vec<u8>,
    pub(crate) kept_bytes: u64,
    pub(crate) total_bytes: u64,
}

/// Parts of an output, as they were written down.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecalledOutput {
    pub(crate) file: Option<Arc<SpoolFile>>,
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    pub(crate) total_bytes: u64,
    pub(crate) total_lines: u64,
    pub(crate) loss_cause: Option<LossCause>,
}

/// The one writer of a log.
#[derive(Debug)]
pub(super) struct LogWriter {
    log: OutputLog,
    quota_bytes: u64,
    spool: Arc<Spool>,
    file: Option<File>,
    /// Set by a failed write; nothing is kept from then on.
    broken: bool,
}

#[derive(Debug, Default)]
struct LogState {
    /// The first bytes; all of them while there is no file.
    head: Vec<u8>,
    /// The last bytes; maintained once there is more than `head`.
    tail: Vec<u8>,
    spool_file: Option<Arc<SpoolFile>>,
    kept_bytes: u64,
    kept_newlines: u64,
    total_bytes: u64,
    newlines: u64,
    ends_mid_line: bool,
    /// Entry `n`: newlines before byte `n * BLOCK_BYTES`.
    blocks: Vec<u64>,
    loss_cause: Option<LossCause>,
}

impl OutputLog {
    pub(crate) fn new(id: OperationId, result_bytes: usize) -> Self {
        Self {
            id,
            result_bytes,
            kept: Arc::default(),
        }
    }

    /// Lines and bytes printed so far; an unfinished line counts.
    pub fn size(&self) -> (u64, u64) {
        let kept = self.kept.lock();
        (kept.lines(), kept.total_bytes)
    }

    /// Output that was printed but is not kept.
    pub fn loss(&self) -> Option<Loss> {
        self.kept.lock().loss()
    }

    /// The text a result carries, of what was printed so far.
    pub fn excerpt(&self, focus: ExcerptFocus) -> Excerpt {
        self.excerpt_within(self.result_bytes, focus)
    }

    /// The same, where several share the room of one result.
    pub fn excerpt_within(&self, max_bytes: usize, focus: ExcerptFocus) -> Excerpt {
        let kept = self.kept.lock();
        excerpt::cut(
            excerpt::HeadAndTail {
                head: &kept.head,
                tail: kept.newest(),
                total_bytes: kept.total_bytes,
                newlines: kept.newlines,
                total_lines: kept.lines(),
                loss: kept.loss(),
            },
            max_bytes.min(self.result_bytes),
            focus,
            &self.id,
        )
    }

    /// Bytes of it in one answer.
    pub fn page_bytes(&self) -> usize {
        self.result_bytes
    }

    /// The last bytes that were printed after byte `from`, at most `max_bytes`, and where they begin.
    pub(super) fn newest_after(&self, from: u64, max_bytes: usize) -> (Vec<u8>, u64) {
        let kept = self.kept.lock();
        let tail = kept.newest();
        let wanted = usize::try_from(kept.total_bytes.saturating_sub(from)).unwrap_or(usize::MAX);
        let newest = &tail[tail.len().saturating_sub(wanted.min(max_bytes))..];
        (newest.to_vec(), kept.total_bytes - newest.len() as u64)
    }

    /// The newest line that is not empty, cut to a readable length.
    pub(super) fn newest_line(&self) -> Option<String> {
        let mut tracker = LineTracker::new();
        tracker.feed(&self.newest_after(0, NEWEST_BYTES).0);
        let line = tracker.newest()?;
        Some(line[..excerpt::fitting_prefix(line.as_bytes(), NEWEST_LINE_BYTES)].to_owned())
    }

    pub(super) fn spooled_bytes(&self) -> u64 {
        let kept = self.kept.lock();
        if kept.spool_file.is_some() {
            kept.kept_bytes
        } else {
            0
        }
    }

    /// Bytes that are stored in memory alone, and so are nowhere else if the server dies: all of a short output, and the
    /// end of one over the quota.
    pub(crate) fn in_memory_only(&self) -> StoredParts {
        let kept = self.kept.lock();
        // One that is removed with the operation is as good as none.
        let file = kept.spool_file.clone().filter(|file| file.is_kept());
        let (head, kept_bytes) = match file {
            Some(_) => (Vec::new(), kept.kept_bytes),
            None => (kept.head.clone(), kept.head.len() as u64),
        };
        let lost = kept.total_bytes > kept_bytes;
        StoredParts {
            file,
            head,
            tail: if lost { kept.newest().to_vec() } else { Vec::new() },
            kept_bytes,
            total_bytes: kept.total_bytes,
        }
    }

    /// A log that was stored, with all of it that can still be read.
    pub(crate) fn recalled(
        id: OperationId,
        result_bytes: usize,
        stored: &RecalledOutput,
    ) -> io::Result<Self> {
        let log = Self::new(id, result_bytes);
        log.catch_up(stored)?;
        Ok(log)
    }

    /// Takes in what was stored since the last time.
    pub(crate) fn catch_up(&self, stored: &RecalledOutput) -> io::Result<()> {
        match &stored.file {
            None => {
                let mut kept = self.kept.lock();
                let known = usize::try_from(kept.kept_bytes).unwrap_or(usize::MAX);
                let new = stored.head.get(known..).unwrap_or_default();
                // Written by a server that may keep more in memory than we do.
                kept.take(new, new.len(), self.result_bytes.max(stored.head.len()));
            }
            Some(file) => self.catch_up_with_file(file)?,
        }
        let mut kept = self.kept.lock();
        if stored.total_bytes > kept.kept_bytes && !stored.tail.is_empty() {
            kept.tail.clone_from(&stored.tail);
            kept.total_bytes = stored.total_bytes;
            kept.ends_mid_line = stored.tail.last().is_some_and(|last| *last != b'\n');
            kept.newlines = stored.total_lines - u64::from(kept.ends_mid_line);
            let unknown = || LossCause::Storage("not all of it was written down".to_owned());
            kept.loss_cause = Some(stored.loss_cause.clone().unwrap_or_else(unknown));
        }
        Ok(())
    }

    fn catch_up_with_file(&self, file: &Arc<SpoolFile>) -> io::Result<()> {
        const STEP_BYTES: u64 = 256 << 10;

        let reader: SpoolReader = file.open()?;
        let end = reader.len()?;
        let mut offset = self.kept.lock().kept_bytes;
        let mut buffer = vec![0; STEP_BYTES.min(end.saturating_sub(offset)) as usize];
        while offset < end {
            let step = &mut buffer[..STEP_BYTES.min(end - offset) as usize];
            reader.read_exact_at(step, offset)?;
            offset += step.len() as u64;
            let mut kept = self.kept.lock();
            kept.take(step, step.len(), self.result_bytes);
        }
        self.kept.lock().spool_file = Some(Arc::clone(file));
        Ok(())
    }

    /// Kept bytes from `offset` on, at most `max_bytes`; blocks. Nothing at the end.
    pub(crate) fn bytes_from(&self, offset: u64, max_bytes: usize) -> io::Result<Vec<u8>> {
        let view = self.view();
        let left = view.kept_bytes.saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(max_bytes)];
        if !bytes.is_empty() {
            view.reader()?.read_exact_at(&mut bytes, offset)?;
        }
        Ok(bytes)
    }

    pub(super) fn view(&self) -> LogView {
        let kept = self.kept.lock();
        LogView {
            total_bytes: kept.total_bytes,
            total_lines: kept.lines(),
            kept_bytes: kept.kept_bytes,
            kept_newlines: kept.kept_newlines,
            loss: kept.loss(),
            tail: kept.newest().to_vec(),
            store: match &kept.spool_file {
                Some(file) => LogStore::File(Arc::clone(file)),
                None => LogStore::Memory(kept.head.clone()),
            },
            blocks: kept.blocks.clone(),
        }
    }
}

impl LogWriter {
    pub(super) fn new(log: OutputLog, quota_bytes: u64, spool: Arc<Spool>) -> Self {
        // What memory holds anyway is always kept.
        let quota_bytes = quota_bytes.max(log.result_bytes as u64);
        Self {
            log,
            quota_bytes,
            spool,
            file: None,
            broken: false,
        }
    }

    /// Takes in what was printed. Writes to the spool file from the calling thread: into the page cache, a chunk at a time.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        let (kept_bytes, head_bytes) = {
            let kept = self.log.kept.lock();
            (kept.kept_bytes, kept.head.len())
        };
        let room = usize::try_from(self.quota_bytes - kept_bytes).unwrap_or(usize::MAX);
        let mut keep = if self.broken { 0 } else { bytes.len().min(room) };
        let mut loss_cause = (keep < bytes.len()).then_some(LossCause::Quota);

        let mut spool_file = None;
        if self.file.is_some() || head_bytes + keep > self.log.result_bytes {
            // The file is written without the lock; readers see the bytes when they are counted below.
            match self.write(&bytes[..keep]) {
                Ok(made) => spool_file = made,
                Err(error) => {
                    tracing::warn!(operation = %self.log.id, %error, "cannot write the spool file");
                    self.broken = true;
                    keep = if self.file.is_some() {
                        0
                    } else {
                        keep.min(self.log.result_bytes - head_bytes)
                    };
                    loss_cause = Some(LossCause::Storage(error.to_string()));
                }
            }
        }

        let mut kept = self.log.kept.lock();
        if spool_file.is_some() {
            kept.spool_file = spool_file;
        }
        if kept.loss_cause.is_none() {
            kept.loss_cause = loss_cause;
        }
        kept.take(bytes, keep, self.log.result_bytes);
    }

    /// Ends the last line if it is unfinished, so that what follows starts a new one.
    pub(super) fn end_line(&mut self) {
        let ends_mid_line = self.log.kept.lock().ends_mid_line;
        if ends_mid_line {
            self.append(b"\n");
        }
    }

    /// The newest line so far.
    pub(super) fn newest_line(&self) -> Option<String> {
        self.log.newest_line()
    }

    /// The log, to which nothing is added any more.
    pub(super) fn into_log(self) -> OutputLog {
        let log = self.log.clone();
        self.close();
        log
    }

    /// Gives up the memory that only a growing log needs.
    pub(super) fn close(self) {
        let mut kept = self.log.kept.lock();
        kept.head.shrink_to_fit();
        kept.tail.shrink_to_fit();
        kept.blocks.shrink_to_fit();
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<Option<Arc<SpoolFile>>> {
        if let Some(file) = &mut self.file {
            return file.write_all(bytes).map(|()| None);
        }
        let (mut file, spool_file) = self.spool.create(&self.log.id)?;
        let head = self.log.kept.lock().head.clone();
        file.write_all(&head)?;
        file.write_all(bytes)?;
        self.file = Some(file);
        Ok(Some(spool_file))
    }
}

impl LogState {
    fn take(&mut self, bytes: &[u8], keep: usize, result_bytes: usize) {
        let outgrown = self.total_bytes + bytes.len() as u64 > result_bytes as u64;
        if outgrown {
            if self.tail.is_empty() {
                self.tail.extend_from_slice(&self.head);
            }
            keep_last(&mut self.tail, bytes, result_bytes);
        }
        let room = result_bytes - self.head.len();
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        let newlines_before = self.newlines;
        self.index(&bytes[..keep]);
        self.kept_newlines += self.newlines - newlines_before;
        self.newlines += count_newlines(&bytes[keep..]);
        self.kept_bytes += keep as u64;
        self.total_bytes += bytes.len() as u64;
        if let Some(&last) = bytes.last() {
            self.ends_mid_line = last != b'\n';
        }
    }

    /// Counts newlines, and notes the count at every block border.
    fn index(&mut self, mut bytes: &[u8]) {
        let mut offset = self.kept_bytes;
        while !bytes.is_empty() {
            if offset.is_multiple_of(BLOCK_BYTES) {
                self.blocks.push(self.newlines);
            }
            let to_border = BLOCK_BYTES - offset % BLOCK_BYTES;
            let (here, rest) = bytes.split_at(bytes.len().min(to_border as usize));
            self.newlines += count_newlines(here);
            offset += here.len() as u64;
            bytes = rest;
        }
    }

    /// As much of the end as memory holds.
    fn newest(&self) -> &[u8] {
        if self.tail.is_empty() {
            &self.head
        } else {
            &self.tail
        }
    }

    fn lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_mid_line)
    }

    fn loss(&self) -> Option<Loss> {
        let bytes = self.total_bytes - self.kept_bytes;
        self.loss_cause.clone().map(|cause| Loss { bytes, cause })
    }
}

pub(super) fn count_newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Appends to `tail` and drops what is older than `max` bytes.
fn keep_last(tail: &mut Vec<u8>, bytes: &[u8], max: usize) {
    let newest = &bytes[bytes.len().saturating_sub(max)..];
    let surplus = (tail.len() + newest.len()).saturating_sub(max);
    tail.drain(..surplus.min(tail.len()));
    tail.extend_from_slice(newest);
}

#[cfg(test)]
#[path = "log_tests.rs"]
pub(in crate::operation) mod tests;
