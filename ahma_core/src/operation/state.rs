//! States of an operation, all that is known of it at one moment, and its end.

use std::{
    fmt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{Excerpt, Loss, OperationId};
use crate::{
    jail::ExitStatus,
    observe::{Finding, Progress, SeverityCounts, Show},
};

/// Every state an operation can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
    Interrupted,
}

/// The states that never change again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// The command ended by itself with a code that its tool file calls a success.
    Completed,
    /// The command ended by itself in any other way, or could not be started.
    Failed,
    /// It was asked to stop.
    Cancelled,
    /// It ran longer than its plan allows.
    TimedOut,
    /// Its supervisor died, or the server ended. Its processes were stopped.
    Interrupted,
}

impl OperationState {
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
        Self::Interrupted,
    ];

    /// The state of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// The state as one that never changes again.
    pub fn as_end(self) -> Option<EndState> {
        match self {
            Self::Queued | Self::Running => None,
            Self::Completed => Some(EndState::Completed),
            Self::Failed => Some(EndState::Failed),
            Self::Cancelled => Some(EndState::Cancelled),
            Self::TimedOut => Some(EndState::TimedOut),
            Self::Interrupted => Some(EndState::Interrupted),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
        }
    }

    /// True if the operation has its outcome.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

impl EndState {
    /// True if it did not end by itself: what it printed and found may be only a part.
    pub fn is_cut(self) -> bool {
        match self {
            Self::Completed | Self::Failed => false,
            Self::Cancelled | Self::TimedOut | Self::Interrupted => true,
        }
    }

    pub fn as_str(self) -> &'static str {
        OperationState::from(self).as_str()
    }
}

impl From<EndState> for OperationState {
    fn from(end: EndState) -> Self {
        match end {
            EndState::Completed => Self::Completed,
            EndState::Failed => Self::Failed,
            EndState::Cancelled => Self::Cancelled,
            EndState::TimedOut => Self::TimedOut,
            EndState::Interrupted => Self::Interrupted,
        }
    }
}

impl fmt::Display for OperationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for EndState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One operation at one moment. Made when asked for, never per line of output.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub id: OperationId,
    pub tool: String,
    /// The command on one short line.
    pub command: String,
    pub directory: PathBuf,
    pub state: OperationState,
    /// Meant to run until it is cancelled.
    pub keeps_running: bool,
    /// Position in the queue, counted from one; only while queued.
    pub queue_position: Option<usize>,
    pub created_at: SystemTime,
    /// Beginning of the run; none while queued, or if it never ran.
    pub started_at: Option<SystemTime>,
    /// Time spent running.
    pub elapsed: Duration,
    /// Percent (only rising), phase and remaining time, as far as the output tells.
    pub progress: Progress,
    /// Step of a sequence that is running.
    pub step: Option<StepPosition>,
    /// The newest line that is not empty, without escape sequences, cut to a readable length.
    pub newest_line: Option<String>,
    pub output_lines: u64,
    pub output_bytes: u64,
    pub finding_counts: SeverityCounts,
    pub exit: Option<ExitStatus>,
    /// Reason why it has not begun, while it is queued, or why it did not complete.
    pub reason: Option<String>,
}

impl Snapshot {
    /// Phase of the whole, of which a step is a part.
    pub fn phase(&self) -> Option<String> {
        phase_in(self.step.as_ref(), self.progress.phase.as_deref())
    }
}

pub(super) fn phase_in(step: Option<&StepPosition>, phase: Option<&str>) -> Option<String> {
    match (step.map(StepPosition::in_words), phase) {
        (Some(step), Some(phase)) => Some(format!("{step}, {phase}")),
        (step, phase) => step.or_else(|| phase.map(str::to_owned)),
    }
}

/// A place in a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPosition {
    /// Counted from one.
    pub number: usize,
    pub of: usize,
    pub label: String,
}

impl StepPosition {
    /// `step 2 of 3: build`.
    pub fn in_words(&self) -> String {
        format!("step {} of {}: {}", self.number, self.of, self.label)
    }
}

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

/// End of processes that outlived their command.
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
