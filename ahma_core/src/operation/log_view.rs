//! A fixed view of an output log, for reading it while it grows.
//!
//! Of an output over the quota the beginning is stored and the end is in memory. A reader sees both, and the gap between.

use std::{io, sync::Arc};

use super::{
    Loss, LossCause, excerpt,
    log::{BLOCK_BYTES, count_newlines},
    spool_file::{SpoolFile, SpoolReader},
};

/// A fixed view of a log that may go on growing.
#[derive(Debug)]
pub(super) struct LogView {
    pub(super) total_bytes: u64,
    pub(super) total_lines: u64,
    /// Bytes stored, from the beginning, and the newlines among them.
    pub(super) kept_bytes: u64,
    pub(super) kept_newlines: u64,
    pub(super) loss: Option<Loss>,
    /// The last bytes of all, kept or not.
    pub(super) tail: Vec<u8>,
    pub(super) store: LogStore,
    /// Entry `n`: newlines before byte `n * BLOCK_BYTES`.
    pub(super) blocks: Vec<u64>,
}

/// Home of the stored bytes.
#[derive(Debug)]
pub(super) enum LogStore {
    Memory(Vec<u8>),
    File(Arc<SpoolFile>),
}

/// Output between the stored beginning and the end that cannot be read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputGap {
    pub bytes: u64,
    /// The first and the last line of which something is missing.
    pub first_line: u64,
    pub last_line: u64,
    pub cause: LossCause,
}

/// A part of the output that can be read without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The number of the line at `start`.
    pub(super) first_line: u64,
    pub(super) begins: SegmentStart,
}

/// Beginning of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentStart {
    AtLine,
    InsideLine,
}

impl LogView {
    /// From the first byte to the gap, or to the end if there is none.
    pub(super) fn beginning(&self) -> Segment {
        let is_whole = self.tail_start() <= self.kept_bytes;
        Segment {
            start: 0,
            end: if is_whole {
                self.total_bytes
            } else {
                self.kept_bytes
            },
            first_line: 1,
            begins: SegmentStart::AtLine,
        }
    }

    /// From the gap to the last byte, if there is a gap.
    pub(super) fn after_gap(&self) -> Option<Segment> {
        let tail_start = self.tail_start();
        if tail_start <= self.kept_bytes {
            return None;
        }
        let body = self.tail.strip_suffix(b"\n").unwrap_or(&self.tail);
        let unfinished = u64::from(body.len() == self.tail.len());
        let first_line = self.total_lines - unfinished - count_newlines(&self.tail) + 1;
        // The end of a line whose beginning is gone is left out, unless it is all there is.
        let (skipped, first_line, begins) = match memchr::memchr(b'\n', body) {
            Some(newline) => (newline + 1, first_line + 1, SegmentStart::AtLine),
            None => (
                excerpt::character_start(&self.tail, 0),
                first_line,
                SegmentStart::InsideLine,
            ),
        };
        Some(Segment {
            start: tail_start + skipped as u64,
            end: self.total_bytes,
            first_line,
            begins,
        })
    }

    pub(super) fn gap(&self) -> Option<OutputGap> {
        let after = self.after_gap()?;
        let cause = self.loss.as_ref()?.cause.clone();
        Some(OutputGap {
            bytes: after.start - self.kept_bytes,
            first_line: self.kept_newlines + 1,
            last_line: after.first_line - u64::from(after.begins == SegmentStart::AtLine),
            cause,
        })
    }

    fn tail_start(&self) -> u64 {
        self.total_bytes - self.tail.len() as u64
    }

    /// A byte offset at or before `line` (from one) to scan from, and the number of the line there.
    pub(super) fn seek_line(&self, line: u64) -> (u64, u64) {
        // The last block with fewer than `line - 1` newlines before it: the line cannot begin before that block.
        let after = self.blocks.partition_point(|&newlines| newlines + 1 < line);
        let block = after.saturating_sub(1);
        (
            block as u64 * BLOCK_BYTES,
            self.blocks.get(block).copied().unwrap_or(0) + 1,
        )
    }

    /// The number of the line that holds byte `offset`, read from `reader`.
    pub(super) fn line_of(&self, offset: u64, reader: &LogReader) -> io::Result<u64> {
        let block = (offset / BLOCK_BYTES).min((self.blocks.len() as u64).saturating_sub(1));
        let start = block * BLOCK_BYTES;
        let mut between = vec![0; (offset - start) as usize];
        reader.read_exact_at(&mut between, start)?;
        Ok(self.blocks.get(block as usize).copied().unwrap_or(0) + count_newlines(&between) + 1)
    }

    pub(super) fn reader(&self) -> io::Result<LogReader<'_>> {
        let stored = match &self.store {
            LogStore::Memory(bytes) => OpenStore::Memory(bytes),
            LogStore::File(spool_file) => OpenStore::File(spool_file.open()?),
        };
        Ok(LogReader {
            stored,
            stored_bytes: self.kept_bytes,
            tail: &self.tail,
            tail_start: self.tail_start(),
        })
    }
}

/// Reads by offset what is stored, and after that the end, which is in memory.
#[derive(Debug)]
pub(super) struct LogReader<'view> {
    stored: OpenStore<'view>,
    stored_bytes: u64,
    tail: &'view [u8],
    tail_start: u64,
}

#[derive(Debug)]
enum OpenStore<'view> {
    Memory(&'view [u8]),
    File(SpoolReader),
}

impl LogReader<'_> {
    pub(super) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let stored = usize::try_from(self.stored_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let (stored, rest) = buffer.split_at_mut(stored.min(buffer.len()));
        let rest_offset = offset + stored.len() as u64;
        if !stored.is_empty() {
            match &self.stored {
                OpenStore::Memory(bytes) => copy_at(bytes, stored, offset)?,
                OpenStore::File(file) => file.read_exact_at(stored, offset)?,
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        let in_tail = rest_offset
            .checked_sub(self.tail_start)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        copy_at(self.tail, rest, in_tail)
    }
}

fn copy_at(source: &[u8], buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(source.len());
    let found = source
        .get(from..from + buffer.len())
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    buffer.copy_from_slice(found);
    Ok(())
}
