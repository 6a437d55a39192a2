//! The truth about servers that died: what they were running was interrupted.

use std::fs;

use rusqlite::{Connection, params};

use super::{
    directory::{HistoryDir, names_in},
    rows::to_millis,
    statements::StoredWhere,
};
use crate::operation::{COMPRESSED_EXTENSION, OperationId, OperationState};

/// Said of an operation whose server died.
const SERVER_DIED: &str = "its server died before it had ended";

/// Marks operations of dead servers as interrupted. Returns how many there were.
pub(super) fn mark_interrupted(connection: &Connection, directory: &HistoryDir) -> rusqlite::Result<usize> {
    let servers: Vec<String> = connection
        .prepare_cached("SELECT DISTINCT server FROM operations WHERE state IN ('queued', 'running')")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut marked = 0;
    for server in servers {
        if directory.is_alive(&server) {
            continue;
        }
        // The last moment of which something is known is taken for the end.
        let alive_at = directory.last_sign_of_life(&server).map_or(0, to_millis);
        marked += connection
            .prepare_cached(
                "UPDATE operations SET state = ?1, reason = ?2, ended_at = max(updated_at, ?4), \
                 duration_ms = CASE WHEN started_at IS NULL THEN 0 ELSE max(max(updated_at, ?4) - started_at, 0) END \
                 WHERE server = ?3 AND state IN ('queued', 'running')",
            )?
            .execute(params![
                OperationState::Interrupted.as_str(),
                SERVER_DIED,
                server,
                alive_at
            ])?;
    }
    Ok(marked)
}

/// Removes what dead servers left and nothing refers to, and returns their outputs that are still to be compressed.
pub(super) fn clean_up(
    connection: &Connection,
    directory: &HistoryDir,
    this_server: &str,
) -> rusqlite::Result<Vec<(String, OperationId)>> {
    let mut plain = Vec::new();
    for server in directory.servers_with_output() {
        if server == this_server || directory.is_alive(&server) {
            continue;
        }
        let stored: Vec<(String, String)> = connection
            .prepare_cached("SELECT id, stored FROM operations WHERE server = ? AND stored <> 'row'")?
            .query_map([&server], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let output = directory.output_of(&server);
        for name in names_in(&output) {
            let wanted = stored.iter().any(|(id, stored)| {
                let is_compressed = name
                    .strip_suffix(COMPRESSED_EXTENSION)
                    .is_some_and(|name| name.strip_suffix('.') == Some(id));
                match StoredWhere::named(stored) {
                    // Another server may be about to note that it is compressed.
                    StoredWhere::Plain => name == *id || is_compressed,
                    StoredWhere::Compressed => is_compressed,
                    StoredWhere::Row => false,
                }
            });
            if !wanted {
                let _ = fs::remove_file(output.join(name));
            }
        }
        // Fails as long as anything is in it.
        let _ = fs::remove_dir(&output);
        for (id, stored) in stored {
            if StoredWhere::named(&stored) == StoredWhere::Plain {
                plain.push((server.clone(), OperationId::recalled(&id)));
            }
        }
    }
    let servers: Vec<String> = connection
        .prepare("SELECT server FROM servers")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for server in servers {
        if !directory.is_alive(&server) {
            connection.execute(
                "DELETE FROM servers WHERE server = ?1 AND NOT EXISTS (SELECT 1 FROM operations WHERE server = ?1)",
                [&server],
            )?;
            connection.execute("DELETE FROM stops WHERE server = ?", [&server])?;
        }
    }
    directory.remove_dead_locks();
    Ok(plain)
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
