//! Compressed output that can be read from any place.
//!
//! A file of zstd frames, each of the same number of bytes, with a table of their lengths in a skippable frame at the
//! end: the seekable format of the zstd project, which `zstd -d` reads too.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
};

use parking_lot::Mutex;

/// Bytes of output in a frame. A reader unpacks a whole one for the first byte it wants.
const FRAME_BYTES: usize = 1 << 20;

/// Output is text that repeats itself; higher levels cost much and gain little.
const LEVEL: i32 = 1;

const SKIPPABLE_MAGIC: u32 = 0x184D_2A5E;
const SEEKABLE_MAGIC: u32 = 0x8F92_EAB1;
/// Number of frames, descriptor, magic.
const FOOTER_BYTES: usize = 9;
/// Compressed and plain length of a frame.
const ENTRY_BYTES: usize = 8;

/// Compresses a file in steps, so that its thread can look after other things between them.
pub(crate) struct FrameWriter {
    source: File,
    target: File,
    compressor: zstd::bulk::Compressor<'static>,
    buffer: Vec<u8>,
    table: Vec<u8>,
    frames: u32,
}

/// Result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameStep {
    More,
    Done,
}

impl std::fmt::Debug for FrameWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameWriter").finish_non_exhaustive()
    }
}

impl FrameWriter {
    pub(crate) fn new(source: File, target: File) -> io::Result<Self> {
        Ok(Self {
            source,
            target,
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            buffer: Vec::new(),
            table: Vec::new(),
            frames: 0,
        })
    }

    /// Compresses the next frame; after the last one writes the table.
    pub(crate) fn step(&mut self) -> io::Result<FrameStep> {
        self.buffer.clear();
        let mut limited = (&self.source).take(FRAME_BYTES as u64);
        limited.read_to_end(&mut self.buffer)?;
        if !self.buffer.is_empty() {
            let frame = self.compressor.compress(&self.buffer)?;
            self.target.write_all(&frame)?;
            self.table.extend(length(frame.len())?.to_le_bytes());
            self.table.extend(length(self.buffer.len())?.to_le_bytes());
            self.frames += 1;
        }
        if self.buffer.len() == FRAME_BYTES {
            return Ok(FrameStep::More);
        }
        let mut end = Vec::with_capacity(self.table.len() + FOOTER_BYTES + ENTRY_BYTES);
        end.extend(SKIPPABLE_MAGIC.to_le_bytes());
        end.extend(length(self.table.len() + FOOTER_BYTES)?.to_le_bytes());
        end.append(&mut self.table);
        end.extend(self.frames.to_le_bytes());
        end.push(0);
        end.extend(SEEKABLE_MAGIC.to_le_bytes());
        self.target.write_all(&end)?;
        Ok(FrameStep::Done)
    }
}

fn length(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(io::Error::other)
}

/// Reads such a file by the offsets of what it holds.
#[derive(Debug)]
pub(crate) struct FrameReader {
    file: File,
    frames: Vec<Frame>,
    plain_bytes: u64,
    /// The frame that was unpacked last.
    unpacked: Mutex<Option<(usize, Vec<u8>)>>,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    offset: u64,
    bytes: usize,
    plain_offset: u64,
    plain_bytes: usize,
}

impl FrameReader {
    pub(crate) fn open(file: File) -> io::Result<Self> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "its table of frames is broken");
        let size = file.metadata()?.len();
        let mut footer = [0; FOOTER_BYTES];
        let footer_start = size.checked_sub(FOOTER_BYTES as u64).ok_or_else(broken)?;
        file.read_exact_at(&mut footer, footer_start)?;
        let [n0, n1, n2, n3, 0, magic @ ..] = footer else {
            return Err(broken());
        };
        if u32::from_le_bytes(magic) != SEEKABLE_MAGIC {
            return Err(broken());
        }
        let table_bytes = u64::from(u32::from_le_bytes([n0, n1, n2, n3])) * ENTRY_BYTES as u64;
        let table_start = footer_start.checked_sub(table_bytes).ok_or_else(broken)?;
        let mut table = vec![0; usize::try_from(table_bytes).map_err(io::Error::other)?];
        file.read_exact_at(&mut table, table_start)?;
        let (mut offset, mut plain_offset) = (0, 0);
        let mut frames = Vec::with_capacity(table.len() / ENTRY_BYTES);
        for entry in table.chunks_exact(ENTRY_BYTES) {
            let number = |from: usize| {
                let bytes = entry[from..from + 4].try_into().unwrap_or_default();
                u32::from_le_bytes(bytes)
            };
            let (bytes, plain_bytes) = (number(0), number(4));
            if plain_bytes as usize > FRAME_BYTES || u64::from(bytes) > size {
                return Err(broken());
            }
            frames.push(Frame {
                offset,
                bytes: bytes as usize,
                plain_offset,
                plain_bytes: plain_bytes as usize,
            });
            offset += u64::from(bytes);
            plain_offset += u64::from(plain_bytes);
        }
        Ok(Self {
            file,
            frames,
            plain_bytes: plain_offset,
            unpacked: Mutex::new(None),
        })
    }

    /// Bytes that it holds.
    pub(crate) fn len(&self) -> u64 {
        self.plain_bytes
    }

    pub(crate) fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        let mut unpacked = self.unpacked.lock();
        while !buffer.is_empty() {
            let after = self.frames.partition_point(|frame| frame.plain_offset <= offset);
            let index = after.checked_sub(1).ok_or(io::ErrorKind::UnexpectedEof)?;
            let frame = self.frames[index];
            if unpacked.as_ref().is_none_or(|(held, _)| *held != index) {
                *unpacked = Some((index, self.unpack(frame)?));
            }
            let plain = unpacked.as_ref().map_or(&[][..], |(_, plain)| plain);
            let from = usize::try_from(offset - frame.plain_offset).unwrap_or(usize::MAX);
            let available = plain.get(from..).filter(|rest| !rest.is_empty());
            let available = available.ok_or(io::ErrorKind::UnexpectedEof)?;
            let count = available.len().min(buffer.len());
            let (now, later) = buffer.split_at_mut(count);
            now.copy_from_slice(&available[..count]);
            buffer = later;
            offset += count as u64;
        }
        Ok(())
    }

    fn unpack(&self, frame: Frame) -> io::Result<Vec<u8>> {
        let mut packed = vec![0; frame.bytes];
        self.file.read_exact_at(&mut packed, frame.offset)?;
        let plain = zstd::bulk::decompress(&packed, frame.plain_bytes)?;
        if plain.len() == frame.plain_bytes {
            Ok(plain)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too short"))
        }
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
