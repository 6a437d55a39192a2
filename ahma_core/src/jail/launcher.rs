//! The seam between operations and processes.

use std::{collections::BTreeMap, os::fd::OwnedFd, path::PathBuf, sync::Arc, time::Duration};

use crate::call::Program;

/// Starts confined commands. Cheap to clone; all clones share one jail and one pool of warm shells.
#[derive(Debug, Clone)]
pub struct Launcher {
    _shared: Arc<()>,
}

/// One process to start.
#[derive(Debug, Clone)]
pub struct Script {
    pub program: Program,
    pub directory: PathBuf,
    /// Set on top of the allow-listed environment.
    pub environment: BTreeMap<String, String>,
    pub stdio: Stdio,
}

/// Where a command's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Both streams are one pipe, so their order is the kernel's.
    Merged,
    /// Two pipes.
    Separate,
    /// A pseudo-terminal, for programs that buffer on pipes.
    Pty,
}

/// A command that was started.
#[derive(Debug)]
pub struct Running {
    pub output: OutputPipes,
    pub process: ProcessHandle,
}

/// The read ends of a command's output; non-blocking, ready for `tokio::io::unix::AsyncFd`.
#[derive(Debug)]
pub enum OutputPipes {
    Merged(OwnedFd),
    Separate { stdout: OwnedFd, stderr: OwnedFd },
}

/// Holds on to a command. Dropping it stops the command with everything it started.
#[derive(Debug)]
pub struct ProcessHandle {
    _private: (),
}

/// What a command's owner reports, in this order: at most one `Exited`, then exactly one `Gone` or `Lost`.
#[derive(Debug, Clone, PartialEq)]
pub enum ProcessEvent {
    /// The command itself has ended; what it left in the background may still run.
    Exited(ExitReport),
    /// Nothing of the command is left.
    Gone,
    /// The owner died without a report. Everything it owned was killed.
    Lost,
}

/// How a command ended and what it used.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitReport {
    pub status: ExitStatus,
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
}

/// The end of a process, as `wait` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("the jail process could not be reached")]
    Jail(#[source] std::io::Error),
    #[error("an argument holds a NUL byte, which no process can be given")]
    NulByte,
}

impl Launcher {
    /// Starts `script`, in a warm shell if one is ready.
    pub async fn launch(&self, _script: Script) -> Result<Running, LaunchError> {
        Err(LaunchError::NulByte)
    }

    /// Ends the pool and the jail. Returns when no process of theirs is left.
    pub async fn shutdown(&self) {}
}

impl ProcessHandle {
    /// The next report. After `Gone` or `Lost` it never returns.
    pub async fn next_event(&mut self) -> ProcessEvent {
        std::future::pending().await
    }

    /// Asks the owner to end everything: TERM, `grace`, KILL, until nothing is left. Returns at once; `Gone` follows.
    pub fn stop(&self, _grace: Duration) {}
}
