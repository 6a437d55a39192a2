//! An operation at one moment.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use crate::{
    jail::ExitStatus,
    observe::{Progress, SeverityCounts},
};

use super::{OperationId, OperationState};

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
