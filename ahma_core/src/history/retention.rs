//! How long operations are kept: by age and by size, the oldest first, always whole.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rusqlite::{Connection, params};

use super::{directory::HistoryDir, rows::to_millis};
use crate::operation::OperationId;

/// Limits of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepLimits {
    /// Older ones are dropped.
    pub age: Duration,
    /// The oldest are dropped while all together take more.
    pub bytes: u64,
}

/// A result that no client was given is kept for so long after its end, whatever the limits say.
const UNCOLLECTED: Duration = Duration::from_secs(3600);

/// Rows looked at in one go.
const BATCH: usize = 1_000;

/// One operation that has ended, as far as this decision is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EndedRow {
    number: i64,
    ended_at: i64,
    collected: bool,
    keep_until: Option<i64>,
    bytes: u64,
}

/// Which of these operations to drop, given that all together take `total` bytes. Expects the oldest first.
fn dropped(rows: &[EndedRow], mut total: u64, limits: KeepLimits, now: i64) -> Vec<i64> {
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let mut dropped = Vec::new();
    for row in rows {
        // A time ahead of the clock was written before the clock was set back; nothing is known of its age.
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

/// Drops what is over the limits. Returns the number of operations dropped.
pub(super) fn apply(
    connection: &mut Connection,
    directory: &HistoryDir,
    limits: KeepLimits,
) -> rusqlite::Result<usize> {
    let now = to_millis(SystemTime::now());
    let mut total: u64 = connection.query_row(
        "SELECT coalesce(sum(stored_bytes), 0) FROM operations",
        [],
        |row| row.get(0),
    )?;
    let (mut count, mut after) = (0, 0);
    loop {
        let rows: Vec<EndedRow> = connection
            .prepare_cached(
                "SELECT number, coalesce(ended_at, created_at), collected_at IS NOT NULL, keep_until, stored_bytes \
                 FROM operations WHERE number > ? AND state NOT IN ('queued', 'running') ORDER BY number LIMIT ?",
            )?
            .query_map(params![after, BATCH], |row| {
                Ok(EndedRow {
                    number: row.get(0)?,
                    ended_at: row.get(1)?,
                    collected: row.get(2)?,
                    keep_until: row.get(3)?,
                    bytes: row.get(4)?,
                })
            })?
            .collect::<Result<_, _>>()?;
        let dropped = dropped(&rows, total, limits, now);
        let dropped_bytes = rows.iter().filter(|row| dropped.contains(&row.number));
        total -= dropped_bytes.map(|row| row.bytes).sum::<u64>().min(total);
        count += remove(connection, directory, &dropped)?;
        let is_young =
            |row: &EndedRow| now - row.ended_at < i64::try_from(limits.age.as_millis()).unwrap_or(i64::MAX);
        match rows.last() {
            // What follows is younger, and fits.
            Some(last) if rows.len() == BATCH && (total > limits.bytes || !is_young(last)) => {
                after = last.number
            }
            _ => break,
        }
    }
    let now_or_never = connection.execute(
        "DELETE FROM tasks WHERE created_at + life_ms < ? AND operation NOT IN (SELECT id FROM operations)",
        [now],
    );
    now_or_never?;
    connection.execute_batch("PRAGMA incremental_vacuum(1000)")?;
    Ok(count)
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
    {
        let mut delete = transaction
            .prepare_cached("DELETE FROM operations WHERE number = ? RETURNING server, id, stored")?;
        for number in numbers {
            let removed: Vec<(String, String, String)> = delete
                .query_map([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<Result<_, _>>()?;
            for (server, id, stored) in removed {
                count += 1;
                if stored != "row" {
                    let id = OperationId::recalled(&id);
                    files.push(directory.plain_output(&server, &id));
                    files.push(directory.compressed_output(&server, &id));
                }
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
