//! The end of an operation.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    jail::ExitStatus,
    observe::{Finding, Progress, SeverityCounts, Show},
};

use super::{EndState, Excerpt, Loss, OperationId};

/// The one result of an operation. When it exists, nothing of the operation is running any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub id: OperationId,
    pub tool: String,
    /// The command on one short line.
    pub command: String,
    pub directory: PathBuf,
    pub state: EndState,
    /// Exit of the command; of a sequence, that of the last step that ran.
    pub exit: Option<ExitStatus>,
    /// Reason why the state is not `completed`.
    pub reason: Option<String>,
    /// The tool file's advice after an end like this.
    pub hint: Option<String>,
    /// Time spent running; zero if it never ran.
    pub duration: Duration,
    /// Of all processes together, as far as their supervisor knows.
    pub cpu: Option<Duration>,
    pub peak_memory_bytes: Option<u64>,
    pub output: Excerpt,
    /// The part of the output that this is.
    pub show: Show,
    /// Output that could not be kept.
    pub lost: Option<Loss>,
    /// Last progress that the output told; the phase names the step of a sequence too.
    pub reached: Progress,
    /// The worst findings; the others that were kept can be read in pages.
    pub findings: Vec<Finding>,
    /// Number of findings, kept or not.
    pub finding_counts: SeverityCounts,
    /// Those of them that could not be kept.
    pub findings_only_counted: SeverityCounts,
    /// One entry per step of a sequence, in order; empty for a single command.
    pub steps: Vec<StepReport>,
    pub background: Background,
    /// Reasons why findings may be missing, and what the guard did about protected files; one sentence each.
    pub notices: Vec<String>,
    /// A guess, after a failure, that the sandbox was the reason.
    pub sandbox_hint: Option<String>,
}

impl Outcome {
    pub fn is_success(&self) -> bool {
        self.state == EndState::Completed
    }
}

/// Fate of processes that outlived their command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Background {
    /// There were none, or they ended by themselves in time.
    Clear,
    /// Some were still running after the linger time and were stopped.
    Stopped,
}

/// End of one step of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    pub label: String,
    pub description: Option<String>,
    pub state: StepState,
    pub exit: Option<ExitStatus>,
    pub duration: Duration,
    /// The line of the output where the step's own output begins; its header is the line before.
    pub first_line: Option<u64>,
    pub lines: u64,
}

/// State at the end of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    Ended(EndState),
    /// Its skip condition held; says which.
    Skipped(String),
    /// An earlier step did not complete.
    NotRun,
}

impl StepState {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ended(end) => end.as_str(),
            Self::Skipped(_) => "skipped",
            Self::NotRun => "not_run",
        }
    }

    /// The reason why it was left out.
    pub fn skipped(&self) -> Option<&str> {
        match self {
            Self::Skipped(reason) => Some(reason),
            Self::Ended(_) | Self::NotRun => None,
        }
    }
}
