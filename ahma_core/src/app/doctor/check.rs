//! The result of a check, and of all of them.

use std::fmt;

use serde::Serialize;
use serde_json::json;

use crate::app::exit::{Exit, Failure};

#[derive(Debug, Serialize)]
pub(super) struct Check {
    area: &'static str,
    status: CheckStatus,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// Best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckStatus {
    Ok,
    Note,
    /// Something works less well than it could.
    Warning,
    /// Something of the user's is wrong.
    Problem,
    /// A prerequisite of the program is missing.
    Missing,
}

impl Check {
    fn new(status: CheckStatus, area: &'static str, what: impl Into<String>) -> Self {
        Self {
            area,
            status,
            what: what.into(),
            fix: None,
        }
    }

    pub(super) fn ok(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(CheckStatus::Ok, area, what)
    }

    pub(super) fn note(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(CheckStatus::Note, area, what)
    }

    pub(super) fn warning(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(CheckStatus::Warning, area, what)
    }

    pub(super) fn problem(area: &'static str, what: impl Into<String>) -> Self {
        Self::new(CheckStatus::Problem, area, what)
    }

    /// A failure that would have prevented the server from starting.
    pub(super) fn failed(area: &'static str, failure: &Failure) -> Self {
        let status = match failure.exit() {
            Exit::MissingPrerequisite => CheckStatus::Missing,
            _ => CheckStatus::Problem,
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

/// In the order they were made.
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

    /// Warnings and notes are not failures.
    pub(super) fn exit(&self) -> Exit {
        match self.worst() {
            CheckStatus::Missing => Exit::MissingPrerequisite,
            CheckStatus::Problem => Exit::UserError,
            CheckStatus::Warning | CheckStatus::Note | CheckStatus::Ok => Exit::Success,
        }
    }

    pub(super) fn as_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&json!({ "status": self.worst(), "checks": self.checks }))
    }

    fn worst(&self) -> CheckStatus {
        let statuses = self.checks.iter().map(|check| check.status);
        statuses.max().unwrap_or(CheckStatus::Ok)
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let status = match check.status {
                CheckStatus::Ok => "ok",
                CheckStatus::Note => "note",
                CheckStatus::Warning => "warning",
                CheckStatus::Problem => "PROBLEM",
                CheckStatus::Missing => "MISSING",
            };
            let what = indented(&check.what);
            writeln!(formatter, "{status:<8} {:<10} {what}", check.area)?;
            if let Some(fix) = &check.fix {
                writeln!(formatter, "{:<20}do: {}", "", indented(fix))?;
            }
        }
        let count = |status: CheckStatus| self.checks.iter().filter(|check| check.status >= status).count();
        match (count(CheckStatus::Problem), count(CheckStatus::Warning)) {
            (0, 0) => write!(formatter, "\nno problems found"),
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
