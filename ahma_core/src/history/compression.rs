//! Compresses the outputs of ended operations, a piece at a time.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    sync::Arc,
};

use crate::operation::{FrameStep, FrameWriter, OperationId, SpoolFile, SpoolPlace};

/// An output on its way from the plain to the compressed file.
#[derive(Debug)]
pub(super) struct Compression {
    pub(super) id: OperationId,
    plain: PathBuf,
    compressed: PathBuf,
    new: PathBuf,
    /// Readers that are to find the new file.
    spool_file: Option<Arc<SpoolFile>>,
    writer: Option<FrameWriter>,
}

/// Result of a step.
#[derive(Debug)]
pub(super) enum CompressionStep {
    More,
    /// The compressed file is in place. The plain one is removed once this is recorded.
    Done {
        saved_bytes: u64,
    },
}

impl Compression {
    pub(super) fn new(
        id: OperationId,
        (plain, compressed): (PathBuf, PathBuf),
        this_server: &str,
        spool_file: Option<Arc<SpoolFile>>,
    ) -> Self {
        Self {
            id,
            new: compressed.with_extension(format!("{this_server}-new")),
            plain,
            compressed,
            spool_file,
            writer: None,
        }
    }

    pub(super) fn step(&mut self) -> io::Result<CompressionStep> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let target = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&self.new)?;
                self.writer
                    .insert(FrameWriter::new(File::open(&self.plain)?, target)?)
            }
        };
        if writer.step()? == FrameStep::More {
            return Ok(CompressionStep::More);
        }
        fs::rename(&self.new, &self.compressed)?;
        let plain_bytes = fs::metadata(&self.plain)?.len();
        let saved_bytes = plain_bytes.saturating_sub(fs::metadata(&self.compressed)?.len());
        Ok(CompressionStep::Done { saved_bytes })
    }

    /// Ends the compression after it was recorded.
    pub(super) fn finish(self) {
        if let Some(spool_file) = &self.spool_file {
            spool_file.moved_to(SpoolPlace::Compressed(self.compressed.clone()));
        }
        let _ = fs::remove_file(&self.plain);
    }

    /// Leaves the plain file as it is.
    pub(super) fn give_up(self) {
        let _ = fs::remove_file(&self.new);
    }
}
