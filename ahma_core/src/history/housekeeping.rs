//! Housekeeping of a writer: marks the operations of dead servers, drops what exceeds the limits, and compresses outputs.
//!
//! It works in pieces, so that writing never waits for all of it.

use std::{collections::VecDeque, sync::Arc};

use rusqlite::Connection;

use super::{
    compression::{Compression, CompressionStep},
    directory::HistoryDir,
    recovery,
    retention::{KeepLimits, Retention, RetentionStep},
    statements::write_compressed,
};
use crate::operation::{Operation, OperationId, SpoolFile};

#[derive(Debug)]
pub(super) struct Housekeeping {
    directory: HistoryDir,
    server: String,
    limits: KeepLimits,
    /// Under way after a look at the limits.
    retention: Option<Retention>,
    compressions: VecDeque<Compression>,
}

impl Housekeeping {
    pub(super) fn new(directory: HistoryDir, server: String, limits: KeepLimits) -> Self {
        Self {
            directory,
            server,
            limits,
            retention: None,
            compressions: VecDeque::new(),
        }
    }

    /// Marks the operations of dead servers, removes their remains, and begins to drop what exceeds the limits.
    pub(super) fn begin(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let interrupted = recovery::mark_interrupted(connection, &self.directory)?;
        if interrupted > 0 {
            tracing::info!(
                interrupted,
                "operations of servers that died are marked as interrupted"
            );
        }
        for (server, id) in recovery::clean_up(connection, &self.directory, &self.server)? {
            self.enqueue(&server, id, None);
        }
        self.retention = Some(Retention::begin(connection, self.limits)?);
        self.directory.note_housekeeping();
        Ok(())
    }

    /// Compresses the output of an operation of this server when there is time.
    pub(super) fn compress(&mut self, operation: &Operation) {
        let spool_file = operation.output().in_memory_only().file;
        self.enqueue(&self.server.clone(), operation.id().clone(), spool_file);
    }

    fn enqueue(&mut self, server: &str, id: OperationId, spool_file: Option<Arc<SpoolFile>>) {
        let paths = (
            self.directory.plain_output(server, &id),
            self.directory.compressed_output(server, &id),
        );
        let compression = Compression::new(id, paths, &self.server, spool_file);
        self.compressions.push_back(compression);
    }

    pub(super) fn has_pieces(&self) -> bool {
        self.retention.is_some() || !self.compressions.is_empty()
    }

    /// Drops a batch of operations, or compresses a piece of an output.
    pub(super) fn do_a_piece(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        let Some(mut retention) = self.retention.take() else {
            self.compress_a_piece(connection);
            return Ok(());
        };
        match retention.step(connection, &self.directory)? {
            RetentionStep::More => self.retention = Some(retention),
            RetentionStep::Done { dropped: 0 } => {}
            RetentionStep::Done { dropped } => {
                tracing::debug!(dropped, "operations over the limits of the history are dropped");
            }
        }
        Ok(())
    }

    fn compress_a_piece(&mut self, connection: &Connection) {
        let Some(mut compression) = self.compressions.pop_front() else {
            return;
        };
        match compression.step() {
            Ok(CompressionStep::More) => self.compressions.push_front(compression),
            Ok(CompressionStep::Done { saved_bytes }) => {
                match write_compressed(connection, &compression.id, saved_bytes) {
                    Ok(()) => compression.finish(),
                    Err(error) => {
                        tracing::debug!(%error, "an output stays as it is");
                        compression.give_up();
                    }
                }
            }
            Err(error) => {
                tracing::debug!(%error, operation = %compression.id, "an output cannot be compressed");
                compression.give_up();
            }
        }
    }
}
