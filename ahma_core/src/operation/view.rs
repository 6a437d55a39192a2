//! A fixed view of an output log, for whoever reads it while it grows.

use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use super::{
    Loss,
    log::{BLOCK_BYTES, count_newlines},
    spool::SpoolFile,
};

/// A fixed view of a log that may go on growing.
#[derive(Debug)]
pub(super) struct LogView {
    pub(super) total_bytes: u64,
    pub(super) total_lines: u64,
    /// How much can be read, from the beginning.
    pub(super) kept_bytes: u64,
    pub(super) loss: Option<Loss>,
    /// The last bytes of all, kept or not.
    pub(super) tail: Vec<u8>,
    pub(super) store: Store,
    /// Entry `n`: newlines before byte `n * BLOCK_BYTES`.
    pub(super) blocks: Vec<u64>,
}

/// Where the kept bytes are.
#[derive(Debug)]
pub(super) enum Store {
    Memory(Vec<u8>),
    File(Arc<SpoolFile>),
}

impl LogView {
    /// Where to start scanning for `line` (from one): a byte offset at or before it, and the number of the line there.
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
        Ok(match &self.store {
            Store::Memory(bytes) => LogReader::Memory(bytes),
            Store::File(spool_file) => LogReader::File(spool_file.open()?),
        })
    }
}

/// Reads kept bytes by offset.
#[derive(Debug)]
pub(super) enum LogReader<'view> {
    Memory(&'view [u8]),
    File(File),
}

impl LogReader<'_> {
    pub(super) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let source = bytes
                    .get(from..from + buffer.len())
                    .ok_or(io::ErrorKind::UnexpectedEof)?;
                buffer.copy_from_slice(source);
                Ok(())
            }
            Self::File(file) => file.read_exact_at(buffer, offset),
        }
    }
}
