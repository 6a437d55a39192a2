//! Rows of the history, and filters for them. Data only.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use crate::{
    jail::ExitStatus,
    observe::{Finding, Progress, Severity, SeverityCounts},
    operation::{OperationId, OperationState, Principal, Snapshot},
};

/// Owner of an operation: for every other owner it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) principal: Principal,
    pub(crate) scope: PathBuf,
}

/// One operation, as it was written down last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperationRow {
    /// Grows from one operation to the next, whatever the clock does.
    pub(crate) number: i64,
    pub(crate) id: OperationId,
    /// The server that ran it, by the name it gave itself at its start.
    pub(crate) server: String,
    pub(crate) owner: Owner,
    /// The client of that server, where it had several.
    pub(crate) session: Option<String>,
    /// Name that the client's program gave itself.
    pub(crate) program: Option<String>,
    pub(crate) tool: String,
    /// The command on one short line, without secrets.
    pub(crate) command: String,
    /// The arguments as JSON, without secrets and without what is too long.
    pub(crate) arguments: Option<String>,
    pub(crate) directory: PathBuf,
    pub(crate) state: OperationState,
    /// Reason why it did not complete.
    pub(crate) reason: Option<String>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) created_at: SystemTime,
    pub(crate) started_at: Option<SystemTime>,
    pub(crate) ended_at: Option<SystemTime>,
    /// Time spent running.
    pub(crate) duration: Duration,
    pub(crate) cpu: Option<Duration>,
    pub(crate) peak_memory_bytes: Option<u64>,
    pub(crate) output_bytes: u64,
    pub(crate) output_lines: u64,
    /// Progress when it ended.
    pub(crate) reached: Progress,
    pub(crate) finding_counts: SeverityCounts,
    /// Time at which a client was given the result.
    pub(crate) collected_at: Option<SystemTime>,
    pub(crate) keeps_running: bool,
}

impl OperationRow {
    /// The snapshot of the operation.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            id: self.id.clone(),
            tool: self.tool.clone(),
            command: self.command.clone(),
            directory: self.directory.clone(),
            state: self.state,
            keeps_running: self.keeps_running,
            queue_position: None,
            created_at: self.created_at,
            started_at: self.started_at,
            elapsed: self.duration,
            progress: self.reached.clone(),
            step: None,
            newest_line: None,
            output_lines: self.output_lines,
            output_bytes: self.output_bytes,
            finding_counts: self.finding_counts,
            exit: self.exit,
            reason: self.reason.clone(),
        }
    }
}

/// Choice of operations; the newest are listed first.
#[derive(Debug, Clone, Default)]
pub(crate) struct OperationFilter {
    /// None for all owners, which only the user may list.
    pub(crate) owner: Option<Owner>,
    pub(crate) tool: Option<String>,
    pub(crate) state: Option<OperationState>,
    /// A principal or the name of a client's program.
    pub(crate) client: Option<String>,
    pub(crate) since: Option<SystemTime>,
    pub(crate) until: Option<SystemTime>,
    /// Only those that found something of this severity or a worse one.
    pub(crate) least: Option<Severity>,
    /// Only those of clients with a name, which only a server with authentication has.
    pub(crate) only_named: bool,
    /// Only those that have not ended.
    pub(crate) only_open: bool,
    /// A part of the tool's name, the command, the arguments or the reason, in any case.
    pub(crate) text: Option<String>,
    pub(crate) limit: usize,
}

/// A finding, and the operation that found it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FindingRow {
    pub(crate) operation: OperationId,
    pub(crate) tool: String,
    pub(crate) found_at: SystemTime,
    pub(crate) finding: Finding,
}

/// Choice of findings; those of the newest operation are listed first, by severity.
#[derive(Debug, Clone)]
pub(crate) struct FindingFilter {
    pub(crate) owner: Option<Owner>,
    pub(crate) least: Severity,
    pub(crate) since: Option<SystemTime>,
    pub(crate) limit: usize,
}

/// A server that has written to the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerRow {
    pub(crate) server: String,
    pub(crate) pid: u32,
    pub(crate) scope: PathBuf,
    pub(crate) version: String,
    pub(crate) started_at: SystemTime,
    pub(crate) is_alive: bool,
    /// Its description of itself, as JSON.
    pub(crate) facts: Option<String>,
}

/// The time that an operation ran, for a plot of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) started_at: SystemTime,
    /// None while it runs.
    pub(crate) ended_at: Option<SystemTime>,
}

/// A task of the tasks extension, which lives on when its server does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRow {
    pub(crate) id: String,
    pub(crate) operation: OperationId,
    pub(crate) created_at: SystemTime,
    pub(crate) life: Duration,
}

/// Milliseconds since the epoch, which is how the database has times.
pub(super) fn to_millis(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => -millis(before.duration()),
    }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn from_millis(millis: i64) -> SystemTime {
    let distance = Duration::from_millis(millis.unsigned_abs());
    let moved = if millis < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    moved.unwrap_or(SystemTime::UNIX_EPOCH)
}
