//! The truth about servers that died: what they were running was interrupted.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

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
    let mut select = connection.prepare("SELECT server, id, stored FROM operations WHERE stored <> 'row'")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let place = StoredWhere::named(&row.get::<_, String>(2)?);
        stored.entry(row.get(0)?).or_default().push((row.get(1)?, place));
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

/// Drops dead servers of which no operation is left, and what they were to stop. A server of a session has a row of its own,
/// so there may be thousands: nothing is written for those that stay, or all other writers would wait for it.
fn forget_servers(connection: &Connection, directory: &HistoryDir) -> rusqlite::Result<()> {
    let servers_of = |query: &str| -> rusqlite::Result<HashSet<String>> {
        let mut select = connection.prepare(query)?;
        let servers = select.query_map([], |row| row.get(0))?;
        servers.collect()
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
