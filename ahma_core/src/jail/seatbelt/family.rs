//! All processes of one operation on macOS. There is no child subreaper: an orphan goes to launchd, whatever its supervisor
//! wants, and is found again by the mark of its sandbox.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};

use super::{census::Membership, kernel, mark::Mark, wall::READY};
use crate::jail::waiting::{self, is_ready};

/// Interval at which the number of processes is checked.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which a supervisor looks for the end of what its command left, which is not reported to it.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Length of a failure that is passed on.
const MAX_MESSAGE: usize = 4096;

/// The command and its descendants.
#[derive(Debug)]
pub(in crate::jail) struct MarkedFamily {
    /// `None` without a sandbox.
    mark: Option<Mark>,
    /// Pipe on which the command says that it is confined, or `sandbox-exec` why it is not.
    status: Option<OwnedFd>,
    max_processes: usize,
    counted: Instant,
    command: CommandState,
}

#[derive(Debug, Clone, Copy)]
enum CommandState {
    NotStarted,
    Running(Pid),
    /// The supervisor has no child any more that would wake it.
    Ended(Pid),
}

impl MarkedFamily {
    pub(super) fn new(mark: Option<Mark>, status: OwnedFd, max_processes: u32) -> Self {
        Self {
            mark,
            status: Some(status),
            max_processes: max_processes as usize,
            counted: Instant::now(),
            command: CommandState::NotStarted,
        }
    }

    /// Waits until the command is behind its sandbox: it says so itself, and the kernel confirms it. Nothing that is not
    /// known to be confined is told what to run.
    pub(in crate::jail) fn begin(&mut self, command: Pid, control: &OwnedFd) -> io::Result<()> {
        self.command = CommandState::Running(command);
        let Some(status) = self.status.take() else {
            return Ok(());
        };
        let mut said = Vec::new();
        let mut buffer = [0; 512];
        while !said.ends_with(READY.as_bytes()) {
            waiting::wait_for_any([&status, control]);
            if is_ready(control) {
                return Err(io::Error::other("the server went away"));
            }
            match rustix::io::read(&status, &mut buffer) {
                Ok(0) => return Err(failure(command, &said)),
                Ok(length) => {
                    said.extend_from_slice(&buffer[..length]);
                    said.drain(..said.len().saturating_sub(MAX_MESSAGE));
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match self.mark {
            Some(mark) if !kernel::has_mark(command, mark) => Err(io::Error::other(
                "the kernel does not confirm that the new process is in its sandbox",
            )),
            Some(_) | None => Ok(()),
        }
    }

    pub(in crate::jail) fn command_ended(&mut self) {
        if let CommandState::Running(pid) = self.command {
            self.command = CommandState::Ended(pid);
        }
    }

    pub(in crate::jail) fn next_look(&self) -> Option<Duration> {
        let next_count = || COUNT_INTERVAL.saturating_sub(self.counted.elapsed());
        Some(self.look_for_end().unwrap_or_else(next_count))
    }

    pub(in crate::jail) fn look_for_end(&self) -> Option<Duration> {
        matches!(self.command, CommandState::Ended(_)).then_some(LOOK_INTERVAL)
    }

    /// Counts if it is time to.
    pub(in crate::jail) fn is_too_large(&mut self) -> bool {
        if self.counted.elapsed() < COUNT_INTERVAL {
            return false;
        }
        self.counted = Instant::now();
        let members = self.membership().map(Membership::members).unwrap_or_default();
        members.iter().map(|member| member.threads).sum::<usize>() > self.max_processes
    }

    pub(in crate::jail) fn is_empty(&self) -> bool {
        self.membership().is_none_or(Membership::is_empty)
    }

    pub(in crate::jail) fn signal_all(&self, signal: Signal) {
        let Some(membership) = self.membership() else {
            return;
        };
        if let CommandState::Running(command) = self.command {
            // At once, before anybody is looked for; not collected, so the number is still its own.
            rustix::process::kill_process_group(command, signal).ok();
        }
        if signal == Signal::KILL {
            membership.kill();
        } else {
            membership.signal(signal);
        }
    }

    fn membership(&self) -> Option<Membership> {
        match (self.mark, self.command) {
            (Some(mark), _) => Some(Membership::Mark(mark)),
            (None, CommandState::Running(pid) | CommandState::Ended(pid)) => Some(Membership::Session(pid)),
            (None, CommandState::NotStarted) => None,
        }
    }
}

/// The reason why a command has ended before it was behind its sandbox.
fn failure(command: Pid, said: &[u8]) -> io::Error {
    let mut status = 0;
    // SAFETY: the pointer is to a live variable. The process has closed its last descriptor, so it ends or has ended.
    unsafe { libc::waitpid(command.as_raw_nonzero().get(), &raw mut status, 0) };
    let said = String::from_utf8_lossy(said);
    let said = said.trim();
    let end = if libc::WIFSIGNALED(status) {
        format!("signal {}", libc::WTERMSIG(status))
    } else {
        format!("exit code {}", libc::WEXITSTATUS(status))
    };
    let separator = if said.is_empty() { "" } else { ": " };
    io::Error::other(format!("sandbox-exec failed ({end}){separator}{said}"))
}
