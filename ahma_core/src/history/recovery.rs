//! Recovery after servers that died: their operations are marked as interrupted, and what they left is removed.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use rusqlite::{Connection, params};

use super::{
    database::rows,
    directory::{HistoryDir, names_in},
    rows::to_millis,
    statements::StoredWhere,
};
use crate::operation::{COMPRESSED_EXTENSION, OperationId, OperationState};

/// Reason of an operation whose server died.
const SERVER_DIED: &str = "its server died before it had ended";

/// Marks operations of dead servers as interrupted, and returns their number.
pub(super) fn mark_interrupted(connection: &Connection, directory: &HistoryDir) -> rusqlite::Result<usize> {
    let query = "SELECT DISTINCT server FROM operations WHERE state IN ('queued', 'running')";
    let servers: Vec<String> = rows(connection, query, [], |row| row.get(0))?;
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
    let plain = remove_outputs(connection, directory, this_server)?;
    forget_servers(connection, directory)?;
    directory.remove_dead_locks();
    Ok(plain)
}

fn remove_outputs(
    connection: &Connection,
    directory: &HistoryDir,
    this_server: &str,
) -> rusqlite::Result<Vec<(String, OperationId)>> {
    let mut dead = directory.servers_with_output();
    dead.retain(|server| server != this_server && !directory.is_alive(server));
    if dead.is_empty() {
        return Ok(Vec::new());
    }
    // One look at all operations, and not one for each server, of which there may be thousands.
    let mut stored: HashMap<String, Vec<(String, StoredWhere)>> = HashMap::new();
    let query = "SELECT server, id, stored FROM operations WHERE stored <> 'row'";
    let all: Vec<(String, String, String)> = rows(connection, query, [], |row| row.try_into())?;
    for (server, id, place) in all {
        let place = StoredWhere::named(&place);
        stored.entry(server).or_default().push((id, place));
    }
    let mut plain = Vec::new();
    for server in dead {
        let stored = stored.remove(&server).unwrap_or_default();
        let output = directory.output_of(&server);
        for name in names_in(&output) {
            let wanted = stored.iter().any(|(id, stored)| {
                let is_compressed = name
                    .strip_suffix(COMPRESSED_EXTENSION)
                    .is_some_and(|name| name.strip_suffix('.') == Some(id));
                match stored {
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
            if stored == StoredWhere::Plain {
                plain.push((server.clone(), OperationId::recalled(&id)));
            }
        }
    }
    Ok(plain)
}

/// Drops dead servers without operations, and their requests to stop. A server of a session has a row of its own, so there
/// may be thousands: nothing is written for those that stay, or all other writers would wait for it.
fn forget_servers(connection: &Connection, directory: &HistoryDir) -> rusqlite::Result<()> {
    let servers_of = |query| -> rusqlite::Result<HashSet<String>> {
        Ok(HashSet::from_iter(rows(connection, query, [], |row| row.get(0))?))
    };
    let mut dead = servers_of("SELECT server FROM servers UNION SELECT server FROM stops")?;
    dead.retain(|server| !directory.is_alive(server));
    // After they were found dead: they write no operation any more.
    let with_operations = servers_of("SELECT DISTINCT server FROM operations")?;
    let with_stops = servers_of("SELECT DISTINCT server FROM stops")?;
    for server in dead {
        if !with_operations.contains(&server) {
            connection.execute("DELETE FROM servers WHERE server = ?", [&server])?;
        }
        if with_stops.contains(&server) {
            connection.execute("DELETE FROM stops WHERE server = ?", [&server])?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
