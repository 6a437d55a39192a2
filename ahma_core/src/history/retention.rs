//! Retention: operations are dropped by age and by size, the oldest first, always whole.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rusqlite::{Connection, params};

use super::{
    database::rows,
    directory::HistoryDir,
    rows::{millis, to_millis},
};
use crate::operation::OperationId;

/// Limits of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeepLimits {
    /// Older ones are dropped.
    pub(crate) age: Duration,
    /// The oldest are dropped while all together take more.
    pub(crate) bytes: u64,
}

/// A result that no client was given is kept for so long after its end, whatever the limits say.
const UNCOLLECTED: Duration = Duration::from_secs(3600);

/// Rows looked at, or removed, in one go: some ten milliseconds.
pub(super) const BATCH: usize = 500;

/// One operation that has ended, as far as this decision is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EndedRow {
    number: i64,
    ended_at: i64,
    collected: bool,
    keep_until: Option<i64>,
    bytes: u64,
}

/// The operations to drop, given that all operations take `total` bytes. Expects the oldest first.
fn dropped(rows: &[EndedRow], mut total: u64, limits: KeepLimits, now: i64) -> Vec<i64> {
    let mut dropped = Vec::new();
    for row in rows {
        // A time in the future was written before the clock was set back; the age is unknown.
        let age = now.saturating_sub(row.ended_at).max(0);
        let is_awaited = !row.collected && age < millis(UNCOLLECTED) && row.ended_at <= now;
        let is_promised = row.keep_until.is_some_and(|until| until > now);
        if is_awaited || is_promised {
            continue;
        }
        if age > millis(limits.age) || total > limits.bytes {
            total = total.saturating_sub(row.bytes);
            dropped.push(row.number);
        }
    }
    dropped
}

/// A walk through the history from the oldest operation on. It drops what exceeds the limits in batches, so that writing does
/// not have to wait for all of it.
#[derive(Debug)]
pub(super) struct Retention {
    limits: KeepLimits,
    now: i64,
    /// Bytes that all operations take.
    total: u64,
    /// Number of the last operation looked at.
    after: i64,
    dropped: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RetentionStep {
    More,
    Done { dropped: usize },
}

impl Retention {
    pub(super) fn begin(connection: &Connection, limits: KeepLimits) -> rusqlite::Result<Self> {
        let query = "SELECT coalesce(sum(stored_bytes), 0) FROM operations";
        let total = connection.query_row(query, [], |row| row.get(0))?;
        Ok(Self {
            limits,
            now: to_millis(SystemTime::now()),
            total,
            after: 0,
            dropped: 0,
        })
    }

    /// Looks at one batch.
    pub(super) fn step(
        &mut self,
        connection: &mut Connection,
        directory: &HistoryDir,
    ) -> rusqlite::Result<RetentionStep> {
        let rows = ended_after(connection, self.after)?;
        let dropped = dropped(&rows, self.total, self.limits, self.now);
        let dropped_bytes = rows.iter().filter(|row| dropped.contains(&row.number));
        self.total -= dropped_bytes.map(|row| row.bytes).sum::<u64>().min(self.total);
        self.dropped += remove(connection, directory, &dropped)?;
        give_back_pages(connection)?;
        let is_old = |row: &EndedRow| self.now.saturating_sub(row.ended_at) >= millis(self.limits.age);
        match rows.last() {
            // The following operations are younger, so they are dropped only for their size.
            Some(last) if rows.len() == BATCH && (self.total > self.limits.bytes || is_old(last)) => {
                self.after = last.number;
                return Ok(RetentionStep::More);
            }
            Some(_) | None => {}
        }
        connection.execute(
            "DELETE FROM tasks WHERE created_at + life_ms < ? AND operation NOT IN (SELECT id FROM operations)",
            [self.now],
        )?;
        Ok(RetentionStep::Done {
            dropped: self.dropped,
        })
    }
}

fn ended_after(connection: &Connection, number: i64) -> rusqlite::Result<Vec<EndedRow>> {
    let query = "SELECT number, coalesce(ended_at, created_at), collected_at IS NOT NULL, keep_until, stored_bytes \
         FROM operations WHERE number > ? AND state NOT IN ('queued', 'running') ORDER BY number LIMIT ?";
    rows(connection, query, params![number, BATCH], |row| {
        Ok(EndedRow {
            number: row.get(0)?,
            ended_at: row.get(1)?,
            collected: row.get(2)?,
            keep_until: row.get(3)?,
            bytes: row.get(4)?,
        })
    })
}

/// Makes the file smaller by some of the pages that are free. The statement gives back one page each time it is stepped.
fn give_back_pages(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("PRAGMA incremental_vacuum(1000)")?;
    let mut pages = statement.query([])?;
    while pages.next()?.is_some() {}
    Ok(())
}

/// Removes operations, with their findings and outputs.
pub(super) fn remove(
    connection: &mut Connection,
    directory: &HistoryDir,
    numbers: &[i64],
) -> rusqlite::Result<usize> {
    let transaction = connection.transaction()?;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut count = 0;
    for number in numbers {
        let query = "DELETE FROM operations WHERE number = ? RETURNING server, id, stored";
        let removed: Vec<(String, String, String)> =
            rows(&transaction, query, [number], |row| row.try_into())?;
        for (server, id, stored) in removed {
            count += 1;
            if stored != "row" {
                let id = OperationId::recalled(&id);
                files.push(directory.plain_output(&server, &id));
                files.push(directory.compressed_output(&server, &id));
            }
        }
    }
    transaction.commit()?;
    // After the rows: a file without a row is removed at the next start, a row without its file would be a lie.
    for file in files {
        let _ = fs::remove_file(file);
    }
    Ok(count)
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
