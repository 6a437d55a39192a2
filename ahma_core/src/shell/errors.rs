//! Failures to set up the sandbox and to start a command.

use std::{io, path::PathBuf};

pub use crate::jail::NulByte;
use crate::{jail::JailError, sandbox::Tier};

/// The sandbox could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No tier works. One line per attempt.
    #[error("no sandbox tier works here: {}", attempts.iter().map(|(tier, why)| format!("{}: {why}", tier.name())).collect::<Vec<_>>().join("; "))]
    NoTier { attempts: Vec<(Tier, String)> },
    /// The requested one does not work.
    #[error("the {} tier of the sandbox does not work here: {why}", tier.name())]
    NotThisTier { tier: Tier, why: String },
    #[error("the scope {} was replaced while the sandbox was set up", scope.display())]
    Scope { scope: PathBuf, source: io::Error },
    #[error(transparent)]
    Jail(#[from] JailError),
}

/// A command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("the helper process that starts commands cannot be reached")]
    Jail(#[source] io::Error),
    #[error("the sandbox could not be set up again")]
    Restart(#[source] StartError),
    #[error("the sandbox scope {} cannot be used any more; make it again, or restart the server with another", scope.display())]
    Scope { scope: PathBuf, source: io::Error },
    /// Nothing of the command has run.
    #[error("the helper process died before it had started a process for the command: {0}")]
    Died(String),
    /// Nothing of the command has run, and a retry would fail the same way.
    #[error("no confined process could be started: {0}")]
    Confinement(String),
    #[error(transparent)]
    NulByte(#[from] NulByte),
    #[error("the server is shutting down")]
    Closed,
}

impl LaunchError {
    /// The jail died before it had started a process: nothing has run, and a retry may succeed.
    pub(super) fn is_jail_death(&self) -> bool {
        matches!(
            self,
            Self::Died(_) | Self::Restart(StartError::Jail(JailError::Silent | JailError::Talk(_)))
        )
    }
}
