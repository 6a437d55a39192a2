//! Operations that were written down, on their way back.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    call::Lifetime,
    observe::{Finding, Progress, SeverityCounts},
};

use super::{CallOrigin, Journal, OperationId, OutputLog, progress_state::ProgressState};

/// Everything of an operation but its outcome.
#[derive(Debug)]
pub(crate) struct RecalledOperation {
    pub(crate) id: OperationId,
    pub(crate) origin: CallOrigin,
    pub(crate) tool: String,
    pub(crate) command: String,
    pub(crate) directory: PathBuf,
    pub(crate) lifetime: Lifetime,
    pub(crate) created_at: SystemTime,
    pub(crate) started_at: Option<SystemTime>,
    pub(crate) elapsed: Duration,
    pub(crate) progress: ProgressState,
    pub(crate) output: OutputLog,
    /// A client was given its result.
    pub(crate) seen: bool,
    /// Hears when its result is collected.
    pub(crate) journal: Option<Arc<dyn Journal>>,
}

/// What the output of an operation had told when it was written down.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecalledProgress {
    pub(crate) progress: Progress,
    /// The most severe first.
    pub(crate) findings: Vec<Finding>,
    pub(crate) only_counted: SeverityCounts,
    pub(crate) notices: Vec<String>,
}

impl From<RecalledProgress> for ProgressState {
    fn from(recalled: RecalledProgress) -> Self {
        Self::recalled(recalled)
    }
}
