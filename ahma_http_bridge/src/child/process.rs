//! The process behind a child: its own group, stopped by end of input, then TERM, then KILL.
//!
//! No `pre_exec`: it would make the standard library fork the whole server instead of spawning. A child
//! whose bridge is killed sees the end of its input, which ends an MCP server.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use super::ChildCommand;
use crate::descriptors;

/// Credentials of the bridge that no child has any business with.
const BRIDGE_SECRETS: [&str; 3] = ["AHMA_HTTP_TOKEN", "AHMA_HTTP_TOKENS_FILE", "AHMA_TOKENS_FILE"];

#[derive(Debug)]
pub(crate) struct Process {
    child: tokio::process::Child,
    group: Option<Pid>,
    /// Tells of the exit without reaping, so that the group id cannot be reused before the group is swept.
    pidfd: Option<AsyncFd<OwnedFd>>,
}

#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// How long a child has after the end of its input, and again after TERM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace {
    pub(crate) after_eof: Duration,
    pub(crate) after_term: Duration,
}

impl Process {
    pub(crate) fn start(command: &ChildCommand) -> io::Result<(Self, Pipes)> {
        let mut builder = Command::new(&command.program);
        builder
            .args(&command.args)
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for name in BRIDGE_SECRETS {
            builder.env_remove(name);
        }
        let mut child = builder.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(child) = group {
            descriptors::give_back(child);
        }
        let pidfd = group.and_then(exit_watch);
        let closed = || io::Error::other("a standard stream of the new process is missing");
        let stdin = child.stdin.take().ok_or_else(closed)?.into_owned_fd()?;
        let pipes = Pipes {
            stdin: pipe::Sender::from_owned_fd(stdin)?,
            stdout: child.stdout.take().ok_or_else(closed)?,
            stderr: child.stderr.take().ok_or_else(closed)?,
        };
        Ok((Self { child, group, pidfd }, pipes))
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.group.map(|pid| pid.as_raw_nonzero().get().cast_unsigned())
    }

    /// Waits for the exit. May be dropped and called again.
    pub(crate) async fn exited(&mut self) {
        match &self.pidfd {
            Some(pidfd) => drop(pidfd.readable().await),
            None => drop(self.child.wait().await),
        }
    }

    /// Ends the process, whose input the caller has closed, and everything left in its group.
    pub(crate) async fn finish(mut self, grace: Grace) -> Option<ExitStatus> {
        if timeout(grace.after_eof, self.exited()).await.is_err() {
            self.signal(Signal::TERM);
            if timeout(grace.after_term, self.exited()).await.is_err() {
                self.signal(Signal::KILL);
                self.exited().await;
            }
        }
        self.signal(Signal::KILL);
        let status = self.child.wait().await.ok();
        self.group_gone().await;
        status
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be empty by now, which is what we want.
            let _ = kill_process_group(group, signal);
        }
    }

    /// A killed process is gone a moment after the signal. The bound is for one stuck in the kernel.
    async fn group_gone(&self) {
        let Some(group) = self.group else { return };
        for wait_ms in [1, 2, 5, 10, 20, 50, 100, 200, 400] {
            if test_kill_process_group(group).is_err() {
                return;
            }
            sleep(Duration::from_millis(wait_ms)).await;
        }
        tracing::warn!(
            group = group.as_raw_nonzero(),
            "processes of a stopped child are still there"
        );
    }
}

#[cfg(target_os = "linux")]
fn exit_watch(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
    // SAFETY: an `OwnedFd` is open, and stays the same descriptor, for as long as the `AsyncFd` owns it.
    unsafe { AsyncFd::register(fd) }.ok()
}

#[cfg(not(target_os = "linux"))]
fn exit_watch(_pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    None
}
