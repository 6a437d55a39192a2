//! The run of an operation, for documents about what it found.

use std::time::SystemTime;

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{jail::ExitStatus, observe::Invocation};

use super::{Operation, OperationState};

impl Operation {
    /// The run as far as it is known now.
    pub fn invocation(&self) -> Invocation {
        let snapshot = self.snapshot();
        let outcome = self.ended();
        let ended_at = outcome.as_ref().and(snapshot.started_at);
        let (exit_code, signal) = match snapshot.exit {
            Some(ExitStatus::Code(code)) => (Some(code), None),
            Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let reached = outcome.map_or(snapshot.progress, |outcome| outcome.reached.clone());
        let is_done = snapshot.state == OperationState::Completed;
        Invocation {
            command: snapshot.command,
            directory: snapshot.directory.display().to_string(),
            started_at: snapshot.started_at.map(written),
            ended_at: ended_at
                .and_then(|at| at.checked_add(snapshot.elapsed))
                .map(written),
            exit_code,
            signal,
            status: snapshot.state.to_string(),
            succeeded: is_done,
            reason: snapshot.reason,
            percent: reached.percent.filter(|_| !is_done),
            phase: reached.phase.filter(|_| !is_done),
        }
    }
}

fn written(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    // To the millisecond; more would be noise.
    let time = time.replace_millisecond(time.millisecond()).unwrap_or(time);
    time.format(&Rfc3339).unwrap_or_default()
}
