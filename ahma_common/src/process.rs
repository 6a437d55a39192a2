//! A child process with its own process group, stopped by end of input, then TERM, then KILL.
//!
//! The exit is watched without reaping: until the leader is reaped its number, which is also the group's, cannot be used
//! again, so the group is always swept first. Nothing here uses `pre_exec`, which would make the standard library fork the
//! whole server instead of spawning. A child whose parent is killed sees the end of its input, which ends an MCP server.

use std::{
    io,
    os::fd::OwnedFd,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::{
    io::unix::AsyncFd,
    net::unix::pipe,
    process::{ChildStderr, ChildStdout, Command},
    time::{sleep, timeout},
};

/// A running child. Dropping it kills its group.
#[derive(Debug)]
pub struct ChildProcess {
    child: tokio::process::Child,
    pid: Pid,
    exit: ExitWatch,
    is_reaped: bool,
}

/// The parent's ends of the child's standard streams.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: pipe::Sender,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// Time for a child after the end of its input, and again after TERM.
#[derive(Debug, Clone, Copy)]
pub struct Grace {
    pub after_eof: Duration,
    pub after_term: Duration,
}

/// Watches the exit without reaping.
#[derive(Debug)]
enum ExitWatch {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has pidfd"))]
    Pidfd(AsyncFd<OwnedFd>),
    /// For systems without pidfd.
    Polling,
}

/// Interval between two looks where the exit must be polled for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl ChildProcess {
    /// Starts `command` as the leader of a new process group, with pipes for all three standard streams.
    pub fn spawn(mut command: Command) -> io::Result<(Self, Pipes)> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let missing = |what| io::Error::other(format!("the new process has no {what}"));
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pid = pid.ok_or_else(|| missing("process id"))?;
        let stdin = child.stdin.take().ok_or_else(|| missing("stdin"))?;
        let pipes = Pipes {
            stdin: pipe::Sender::from_owned_fd(stdin.into_owned_fd()?)?,
            stdout: child.stdout.take().ok_or_else(|| missing("stdout"))?,
            stderr: child.stderr.take().ok_or_else(|| missing("stderr"))?,
        };
        let process = Self {
            child,
            pid,
            exit: ExitWatch::open(pid),
            is_reaped: false,
        };
        Ok((process, pipes))
    }

    /// The process id, which is also that of the group.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits for the exit of the leader. May be dropped and called again.
    pub async fn exited(&self) {
        match &self.exit {
            ExitWatch::Pidfd(pidfd) => drop(pidfd.readable().await),
            ExitWatch::Polling => {
                while !has_exited(self.pid) {
                    sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    /// Ends the process, whose input the caller has closed, and everything left in its group.
    pub async fn finish(mut self, grace: Grace) -> Option<ExitStatus> {
        if timeout(grace.after_eof, self.exited()).await.is_err() {
            self.signal(Signal::TERM);
            if timeout(grace.after_term, self.exited()).await.is_err() {
                self.signal(Signal::KILL);
                self.exited().await;
            }
        }
        // Launchers may leave the real server behind.
        self.signal(Signal::KILL);
        self.is_reaped = true;
        let status = self.child.wait().await.ok();
        self.group_gone().await;
        status
    }

    fn signal(&self, signal: Signal) {
        // The group may be empty by now, which is what we want.
        let _ = kill_process_group(self.pid, signal);
    }

    /// A killed process is gone a moment after the signal. The bound is for one stuck in the kernel.
    async fn group_gone(&self) {
        for wait_ms in [1, 2, 5, 10, 20, 50, 100, 200, 400] {
            if test_kill_process_group(self.pid).is_err() {
                return;
            }
            sleep(Duration::from_millis(wait_ms)).await;
        }
        tracing::warn!(group = self.id(), "processes of a stopped child are still there");
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.signal(Signal::KILL);
        }
    }
}

impl ExitWatch {
    #[cfg(target_os = "linux")]
    fn open(pid: Pid) -> Self {
        let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
            return Self::Polling;
        };
        // SAFETY: an `OwnedFd` is open, and stays the same descriptor, for as long as the `AsyncFd` owns it.
        unsafe { AsyncFd::register(fd) }.map_or(Self::Polling, Self::Pidfd)
    }

    #[cfg(not(target_os = "linux"))]
    fn open(_pid: Pid) -> Self {
        Self::Polling
    }
}

/// Looks without reaping.
fn has_exited(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
