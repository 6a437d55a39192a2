//! What one look found, and what all of them come to.

use std::fmt;

use serde::Serialize;
use serde_json::json;

use crate::app::exit::{Exit, Failure};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    area: &'static str,
    status: Status,
    what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// How it stands, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    /// Worth knowing.
    Note,
    /// Something works less well than it could.
    Warning,
    /// Something that the user has is wrong.
    Problem,
    /// Something that the program needs is not there.
    Missing,
}

impl Check {
    fn new(status: Status, area: &'static str, what: impl Into<String>) -> Self {
        Self {
            area,
            status,
            what: what.into(),
            fix: None,
        }
    }

    pub(super) fn ok(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(Status::Ok, area, what)
    }

    pub(super) fn note(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(Status::Note, area, what)
    }

    pub(super) fn warning(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(Status::Warning, area, what)
    }

    pub(super) fn problem(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(Status::Problem, area, what)
    }

    /// What would have ended a start of the server.
    pub(super) fn failed(area: &'static str, failure: &Failure) -> Self {
        let status = match failure.exit() {
            Exit::MissingPrerequisite => Status::Missing,
            _ => Status::Problem,
        };
        Self {
            fix: failure.hint().map(str::to_owned),
            ..Self::new(status, area, failure.to_string())
        }
    }

    #[must_use]
    pub(super) fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// All of them, in the order they were made.
#[derive(Debug, Default)]
pub(super) struct Checks {
    checks: Vec<Check>,
}

impl Checks {
    pub(super) fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    pub(super) fn add_all(&mut self, checks: impl IntoIterator<Item = Check>) {
        self.checks.extend(checks);
    }

    /// Warnings and notes are no failure.
    pub(super) fn exit(&self) -> Exit {
        match self.worst() {
            Status::Missing => Exit::MissingPrerequisite,
            Status::Problem => Exit::UserError,
            Status::Warning | Status::Note | Status::Ok => Exit::Success,
        }
    }

    pub(super) fn as_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&json!({ "status": self.worst(), "checks": self.checks }))
    }

    fn worst(&self) -> Status {
        self.checks
            .iter()
            .map(|check| check.status)
            .max()
            .unwrap_or(Status::Ok)
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let status = match check.status {
                Status::Ok => "ok",
                Status::Note => "note",
                Status::Warning => "warning",
                Status::Problem => "PROBLEM",
                Status::Missing => "MISSING",
            };
            writeln!(
                formatter,
                "{status:<8} {:<10} {}",
                check.area,
                indented(&check.what)
            )?;
            if let Some(fix) = &check.fix {
                writeln!(formatter, "{:<20}do: {}", "", indented(fix))?;
            }
        }
        let count = |status: Status| self.checks.iter().filter(|check| check.status >= status).count();
        match (count(Status::Problem), count(Status::Warning)) {
            (0, 0) => write!(formatter, "\nall is well"),
            // Whether it does what the user wants is for him to say.
            (0, warnings) => write!(formatter, "\nno problems; warnings: {warnings}"),
            (problems, all) => {
                write!(formatter, "\nproblems: {problems}; warnings: {}", all - problems)
            }
        }
    }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n                    ")
}
