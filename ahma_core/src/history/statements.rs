//! The statements that write operations, and those that read them back.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rusqlite::{Connection, Row, named_params, params};

use super::{
    database::{row, rows},
    details::{OutcomeDetails, exit_status},
    redaction::{fitting, without_secrets},
    rows::{OperationRow, Owner, TaskRow, from_millis, millis, to_millis},
};
use crate::{
    jail::ExitStatus,
    observe::{Finding, FindingBudget, Progress, Severity, SeverityCounts},
    operation::{Operation, OperationId, OperationState, Outcome, Principal, Snapshot},
};

/// Bytes that a row takes besides output and findings, with its share of the indexes.
const ROW_BYTES: u64 = 1 << 10;

/// Characters that a search looks at.
const SEARCHED: usize = 600;

/// Shorter output gains nothing by being packed.
const PACK_FROM: usize = 512;
const PACK_LEVEL: i32 = 1;

/// Location of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredWhere {
    Row,
    Plain,
    Compressed,
}

impl StoredWhere {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Plain => "plain",
            Self::Compressed => "zstd",
        }
    }

    pub(super) fn named(name: &str) -> Self {
        match name {
            "plain" => Self::Plain,
            "zstd" => Self::Compressed,
            _ => Self::Row,
        }
    }
}

/// Server and scope that operations are written for.
#[derive(Debug)]
pub(super) struct WritingServer {
    pub(super) server: String,
    pub(super) scope: PathBuf,
}

/// Writes an operation as it is now, with its output and its findings. Returns where its output is.
pub(super) fn write_operation(
    connection: &Connection,
    writing: &WritingServer,
    operation: &Operation,
) -> rusqlite::Result<StoredWhere> {
    // The outcome first: the snapshot of an ended operation must not be older than its end.
    let outcome = operation.ended();
    let snapshot = operation.snapshot();
    let output = operation.output().in_memory_only();
    let (stored, file_bytes) = match output.file {
        Some(_) => (StoredWhere::Plain, output.kept_bytes),
        None => (StoredWhere::Row, 0),
    };
    let findings = operation.findings(0, FindingBudget::ALL).findings;
    let findings: Vec<(Severity, String)> = findings
        .iter()
        .filter_map(|finding| Some((finding.severity, serde_json::to_string(finding).ok()?)))
        .collect();
    let finding_bytes: usize = findings.iter().map(|(_, text)| text.len()).sum();
    let (packed, head) = packed(output.head, outcome.is_some());
    let stored_bytes = ROW_BYTES + file_bytes + (head.len() + output.tail.len() + finding_bytes) as u64;

    let number = upsert(
        connection,
        writing,
        operation,
        &snapshot,
        outcome.as_deref(),
        (stored, stored_bytes),
    )?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO details (number, arguments, outcome) VALUES (?, ?, ?)")?
        .execute(params![
            number,
            operation.origin().arguments.as_deref().map(without_secrets),
            outcome
                .as_ref()
                .and_then(|outcome| serde_json::to_string(&OutcomeDetails::of(outcome)).ok()),
        ])?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO outputs (number, head, head_bytes, packed, tail) VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![
            number,
            head,
            output.total_bytes.min(output.kept_bytes),
            packed,
            Some(output.tail).filter(|tail| !tail.is_empty()),
        ])?;
    connection
        .prepare_cached("DELETE FROM findings WHERE number = ?")?
        .execute([number])?;
    let mut insert = connection
        .prepare_cached("INSERT INTO findings (number, place, severity, finding) VALUES (?, ?, ?, ?)")?;
    for (place, (severity, finding)) in findings.iter().enumerate() {
        insert.execute(params![number, place, *severity as i64, finding])?;
    }
    Ok(stored)
}

fn packed(head: Vec<u8>, has_ended: bool) -> (bool, Vec<u8>) {
    if !has_ended || head.len() < PACK_FROM {
        return (false, head);
    }
    match zstd::bulk::compress(&head, PACK_LEVEL) {
        Ok(packed) if packed.len() < head.len() => (true, packed),
        Ok(_) | Err(_) => (false, head),
    }
}

fn upsert(
    connection: &Connection,
    writing: &WritingServer,
    operation: &Operation,
    snapshot: &Snapshot,
    outcome: Option<&Outcome>,
    (stored, stored_bytes): (StoredWhere, u64),
) -> rusqlite::Result<i64> {
    let now = to_millis(SystemTime::now());
    let origin = operation.origin();
    let command = without_secrets(&snapshot.command);
    let reached = outcome.map_or(&snapshot.progress, |outcome| &outcome.reached);
    let counts = snapshot.finding_counts;
    let state = outcome.map_or(snapshot.state, |outcome| outcome.state.into());
    let reason = outcome.and_then(|outcome| outcome.reason.as_deref());
    connection.prepare_cached(include_str!("upsert.sql"))?.query_row(
        named_params! {
            ":id": snapshot.id.as_str(),
            ":server": writing.server,
            ":principal": origin.principal.name().unwrap_or_default(),
            ":scope": writing.scope.to_string_lossy(),
            ":session": origin.client.name(),
            ":program": origin.program,
            ":tool": snapshot.tool,
            ":command": command,
            ":directory": snapshot.directory.to_string_lossy(),
            ":state": state.as_str(),
            ":reason": reason,
            ":exit_code": snapshot.exit.and_then(ExitStatus::code),
            ":signal": snapshot.exit.and_then(ExitStatus::signal),
            ":created_at": to_millis(snapshot.created_at),
            ":started_at": snapshot.started_at.map(to_millis),
            ":ended_at": outcome.map(|_| ended_at(snapshot).map_or(now, to_millis)),
            ":updated_at": now,
            ":duration_ms": millis(snapshot.elapsed),
            ":cpu_ms": outcome.and_then(|outcome| outcome.cpu).map(millis),
            ":peak_memory": outcome.and_then(|outcome| outcome.peak_memory_bytes),
            ":output_bytes": snapshot.output_bytes,
            ":output_lines": snapshot.output_lines,
            ":percent": reached.percent,
            ":phase": reached.phase,
            ":critical": counts.critical,
            ":high": counts.high,
            ":medium": counts.medium,
            ":low": counts.low,
            ":info": counts.info,
            ":collected_at": operation.is_seen().then_some(now),
            ":keeps_running": snapshot.keeps_running,
            ":stored": stored.as_str(),
            ":stored_bytes": stored_bytes,
            ":search": searched(&snapshot.tool, &command, origin.arguments.as_deref(), reason),
        },
        |row| row.get(0),
    )
}

/// The end of an operation that ran. One that never began ended when that is written down.
fn ended_at(snapshot: &Snapshot) -> Option<SystemTime> {
    snapshot.started_at?.checked_add(snapshot.elapsed)
}

/// The text in which a search looks.
fn searched(tool: &str, command: &str, arguments: Option<&str>, reason: Option<&str>) -> String {
    let arguments = arguments.map(without_secrets).unwrap_or_default();
    let mut text = format!("{tool}\n{command}\n{}\n{arguments}", reason.unwrap_or_default()).to_lowercase();
    text.truncate(fitting(&text, SEARCHED).len());
    text
}

/// Notes that a client was given the result.
pub(super) fn write_collected(connection: &Connection, id: &OperationId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE operations SET collected_at = ? WHERE id = ? AND collected_at IS NULL")?
        .execute(params![to_millis(SystemTime::now()), id.as_str()])
        .map(drop)
}

/// Notes that an output is in its compressed file now.
pub(super) fn write_compressed(
    connection: &Connection,
    id: &OperationId,
    saved_bytes: u64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE operations SET stored = 'zstd', stored_bytes = max(stored_bytes - ?, 0) WHERE id = ? AND stored = 'plain'",
        )?
        .execute(params![saved_bytes, id.as_str()])
        .map(drop)
}

/// Notes a task, and keeps its operation as long as the task lives.
pub(super) fn write_task(connection: &Connection, task: &TaskRow) -> rusqlite::Result<()> {
    let created_at = to_millis(task.created_at);
    connection.execute(
        "INSERT OR REPLACE INTO tasks (id, operation, created_at, life_ms) VALUES (?, ?, ?, ?)",
        params![task.id, task.operation.as_str(), created_at, millis(task.life)],
    )?;
    connection.execute(
        "UPDATE operations SET keep_until = ? WHERE id = ?",
        params![
            created_at.saturating_add(millis(task.life)),
            task.operation.as_str()
        ],
    )?;
    Ok(())
}

pub(super) fn write_server(
    connection: &Connection,
    writing: &WritingServer,
    started_at: SystemTime,
    facts: Option<&str>,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO servers (server, pid, scope, version, started_at, facts) VALUES (?, ?, ?, ?, ?, ?)",
        params![
            writing.server,
            std::process::id(),
            writing.scope.to_string_lossy(),
            env!("CARGO_PKG_VERSION"),
            to_millis(started_at),
            facts,
        ],
    )?;
    Ok(())
}

/// Usage of an operation so far.
pub(super) fn write_usage(connection: &Connection, id: &OperationId, samples: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO usages (number, samples) SELECT number, ? FROM operations WHERE id = ?",
        )?
        .execute(params![samples, id.as_str()])?;
    Ok(())
}

/// Requests to stop operations of a server, and their reasons; they are taken away.
pub(super) fn take_stops(
    connection: &Connection,
    server: &str,
) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    let query = "SELECT id, reason FROM stops WHERE server = ?";
    let stops = rows(connection, query, [server], |row| row.try_into())?;
    if !stops.is_empty() {
        connection.execute("DELETE FROM stops WHERE server = ?", [server])?;
    }
    Ok(stops)
}

/// The columns that [`read_operation`] reads, of `operations` as `o` and `details` as `d`.
pub(super) const COLUMNS: &str = "o.number, o.id, o.server, o.principal, o.scope, o.session, o.program, o.tool, o.command, \
    o.directory, o.state, o.reason, o.exit_code, o.signal, o.created_at, o.started_at, o.ended_at, o.duration_ms, o.cpu_ms, \
    o.peak_memory, o.output_bytes, o.output_lines, o.percent, o.phase, o.critical, o.high, o.medium, o.low, o.info, \
    o.collected_at, o.keeps_running, d.arguments";

pub(super) fn read_operation(row: &Row<'_>) -> rusqlite::Result<OperationRow> {
    let time = |index: usize| row.get::<_, Option<i64>>(index).map(|time| time.map(from_millis));
    let span = |index: usize| {
        let millis = row.get::<_, Option<u64>>(index);
        millis.map(|millis| millis.map(Duration::from_millis))
    };
    let principal: String = row.get(3)?;
    let state: String = row.get(10)?;
    Ok(OperationRow {
        number: row.get(0)?,
        id: OperationId::recalled(&row.get::<_, String>(1)?),
        server: row.get(2)?,
        owner: Owner {
            principal: if principal.is_empty() {
                Principal::default()
            } else {
                Principal::named(&principal)
            },
            scope: row.get::<_, String>(4)?.into(),
        },
        session: row.get(5)?,
        program: row.get(6)?,
        tool: row.get(7)?,
        command: row.get(8)?,
        directory: row.get::<_, String>(9)?.into(),
        // Only a later version has states that this one does not know, and its database is not opened.
        state: OperationState::named(&state).unwrap_or(OperationState::Interrupted),
        reason: row.get(11)?,
        exit: exit_status(row.get(12)?, row.get(13)?),
        created_at: from_millis(row.get(14)?),
        started_at: time(15)?,
        ended_at: time(16)?,
        duration: span(17)?.unwrap_or_default(),
        cpu: span(18)?,
        peak_memory_bytes: row.get(19)?,
        output_bytes: row.get(20)?,
        output_lines: row.get(21)?,
        reached: Progress {
            percent: row.get(22)?,
            phase: row.get(23)?,
            ..Progress::default()
        },
        finding_counts: SeverityCounts {
            critical: row.get(24)?,
            high: row.get(25)?,
            medium: row.get(26)?,
            low: row.get(27)?,
            info: row.get(28)?,
        },
        collected_at: time(29)?,
        keeps_running: row.get(30)?,
        arguments: row.get(31)?,
    })
}

/// The findings of an operation, the most severe first.
pub(super) fn read_findings(connection: &Connection, number: i64) -> rusqlite::Result<Vec<Finding>> {
    let query = "SELECT finding FROM findings WHERE number = ? ORDER BY place";
    let texts: Vec<String> = rows(connection, query, [number], |row| row.get(0))?;
    let findings = texts.iter().filter_map(|text| serde_json::from_str(text).ok());
    Ok(findings.collect())
}

/// Output in the row itself: beginning and end.
pub(super) fn read_output(connection: &Connection, number: i64) -> rusqlite::Result<(Vec<u8>, Vec<u8>)> {
    let query = "SELECT head, head_bytes, packed, tail FROM outputs WHERE number = ?";
    let found = row(connection, query, [number], |row| {
        let head: Option<Vec<u8>> = row.get(0)?;
        let mut head = head.unwrap_or_default();
        if row.get(2)? {
            head = zstd::bulk::decompress(&head, row.get(1)?).unwrap_or_default();
        }
        let tail: Option<Vec<u8>> = row.get(3)?;
        Ok((head, tail.unwrap_or_default()))
    });
    Ok(found?.unwrap_or_default())
}

/// The rest of an operation's end, and where its output is.
pub(super) fn read_end(
    connection: &Connection,
    number: i64,
) -> rusqlite::Result<(OutcomeDetails, StoredWhere)> {
    let (details, stored): (Option<String>, String) = connection
        .prepare_cached(
            "SELECT d.outcome, o.stored FROM operations o LEFT JOIN details d USING (number) WHERE o.number = ?",
        )?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let details = details.and_then(|text| serde_json::from_str(&text).ok());
    Ok((details.unwrap_or_default(), StoredWhere::named(&stored)))
}
