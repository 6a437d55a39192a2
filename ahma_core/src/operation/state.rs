//! States of an operation, and all that is known of it at one moment.

use std::{
    fmt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::OperationId;
use crate::{
    jail::ExitStatus,
    observe::{Progress, SeverityCounts},
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
    /// Which step of a sequence is running.
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
