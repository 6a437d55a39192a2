//! States of an operation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Every state an operation can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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
