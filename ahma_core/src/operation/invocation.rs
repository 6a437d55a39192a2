//! Documents about what an operation found, for other programs.

use std::time::SystemTime;

use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    jail::ExitStatus,
    observe::{self, FindingPage, Invocation},
};

use super::{Operation, OperationState};

impl Operation {
    /// Findings of it as a SARIF log.
    pub fn sarif(&self, page: &FindingPage) -> Value {
        observe::sarif(page, self.tool(), &self.invocation())
    }

    /// Findings of it as a JUnit report.
    pub fn junit(&self, page: &FindingPage) -> String {
        observe::junit(page, self.tool(), &self.invocation())
    }

    /// The run as far as it is known now.
    fn invocation(&self) -> Invocation {
        let snapshot = self.snapshot();
        let outcome = self.ended();
        let ended_at = outcome.as_ref().and(snapshot.started_at);
        let reached = outcome.map_or(snapshot.progress, |outcome| outcome.reached.clone());
        let is_done = snapshot.state == OperationState::Completed;
        Invocation {
            command: snapshot.command,
            directory: snapshot.directory.display().to_string(),
            started_at: snapshot.started_at.map(rfc3339),
            ended_at: ended_at
                .and_then(|at| at.checked_add(snapshot.elapsed))
                .map(rfc3339),
            exit_code: snapshot.exit.and_then(ExitStatus::code),
            signal: snapshot.exit.and_then(ExitStatus::signal),
            status: snapshot.state.to_string(),
            succeeded: is_done,
            reason: snapshot.reason,
            percent: reached.percent.filter(|_| !is_done),
            phase: reached.phase.filter(|_| !is_done),
        }
    }
}

/// To the millisecond; more would be noise.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    let time = time.replace_millisecond(time.millisecond()).unwrap_or(time);
    time.format(&Rfc3339).unwrap_or_default()
}
