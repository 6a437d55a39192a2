//! The server's side of one operation's supervisor.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::Notify,
};

use super::wire::{self, Exited, Instruction, Report};

/// A handle on a command. Dropping it stops the command with everything it started.
#[derive(Debug)]
pub struct ProcessHandle {
    control: AsyncFd<OwnedFd>,
    /// Read and not yet returned.
    pending: VecDeque<ProcessEvent>,
    life: Life,
    supervisor: SupervisorId,
    /// Told when this is dropped.
    end: Option<Arc<Notify>>,
}

/// The process id of a supervisor as soon as it is known. Clones are the same id.
#[derive(Debug, Clone, Default)]
pub struct SupervisorId(Arc<AtomicI32>);

impl SupervisorId {
    pub(super) fn get(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(self.0.load(Ordering::Relaxed))
    }
}

impl Drop for ProcessHandle {
    fn drop(&mut self) {
        if let Some(end) = &self.end {
            end.notify_one();
        }
    }
}

/// Reported state of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Requested,
    /// Waiting for what to run, or running it.
    Started,
    /// `Gone` or `Lost` is the last event.
    Ended,
}

/// A report of a command's supervisor. In this order: at most one `Exited`, then exactly one `Gone` or `Lost`.
#[derive(Debug, Clone, PartialEq)]
pub enum ProcessEvent {
    /// The command itself has ended; what it left in the background may still run.
    Exited(ExitReport),
    /// Nothing of the command is left.
    Gone,
    /// The supervisor died without a report, or could not start the command. The command was killed, and what it had
    /// started was, or is about to be.
    Lost { reason: String },
}

/// The result of a request for a process. Unless it is idle, `Lost` is the next event.
#[derive(Debug)]
pub(crate) enum Requested {
    Idle {
        /// If one was requested.
        terminal: Option<OwnedFd>,
    },
    Failed {
        reason: String,
    },
    /// The supervisor died, or the jail before it started one. The process was told nothing, so nothing can have run.
    Died {
        reason: String,
    },
}

/// The end of a command and the resources it used.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitReport {
    pub status: ExitStatus,
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
}

/// The end of a process, as `wait` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

impl ExitStatus {
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) => None,
        }
    }

    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

impl ProcessHandle {
    /// `control` must not block.
    pub(crate) fn new(control: OwnedFd) -> io::Result<Self> {
        // SAFETY: an OwnedFd always gives the same descriptor and keeps it open until it is dropped with the AsyncFd.
        let control = unsafe { AsyncFd::register_with_interest(control, Interest::READABLE) }?;
        Ok(Self {
            control,
            pending: VecDeque::new(),
            life: Life::Requested,
            supervisor: SupervisorId::default(),
            end: None,
        })
    }

    /// Tells `end` when the command is done with.
    pub(crate) fn notify_end(&mut self, end: Arc<Notify>) {
        self.end = Some(end);
    }

    /// The process below which the whole command runs.
    pub fn supervisor(&self) -> SupervisorId {
        self.supervisor.clone()
    }

    /// The next report. After `Gone` or `Lost` it never returns.
    pub async fn next_event(&mut self) -> ProcessEvent {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            if self.life == Life::Ended {
                std::future::pending::<()>().await;
            }
            let (report, _) = self.receive().await;
            self.take(report);
        }
    }

    /// Has the supervisor end everything: `signal`, TERM, KILL within `grace`, until nothing is left. Returns at once;
    /// `Gone` follows.
    pub fn stop(&self, signal: i32, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        // A supervisor that cannot be reached is gone already, and `next_event` reports it.
        wire::send(
            self.control.get_ref(),
            &Instruction::Stop { signal, grace_ms },
            &[],
        )
        .ok();
    }

    /// The process has not ended, as far as its supervisor has reported. Does not wait.
    pub(crate) fn is_alive(&mut self) -> bool {
        loop {
            match wire::receive_short(self.control.get_ref()) {
                Ok(Some((report, _))) => self.take(Ok(report)),
                Ok(None) => return false,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.life != Life::Ended && self.pending.is_empty();
                }
                Err(_) => return false,
            }
        }
    }

    /// Waits until the process exists and waits for what to run.
    pub(crate) async fn wait_until_idle(&mut self) -> Requested {
        let mut terminal = None;
        while self.life == Life::Requested {
            let (report, fds) = self.receive().await;
            terminal = fds.into_iter().next().or(terminal);
            let failure = match &report {
                Ok(Report::Failed { reason }) => Some(Requested::Failed {
                    reason: reason.clone(),
                }),
                Err(reason) => Some(Requested::Died {
                    reason: reason.clone(),
                }),
                Ok(_) => None,
            };
            self.take(report);
            if let Some(failure) = failure {
                return failure;
            }
        }
        Requested::Idle { terminal }
    }

    async fn receive(&self) -> (Result<Report, String>, Vec<OwnedFd>) {
        let received = self
            .control
            .async_io(Interest::READABLE, |socket| wire::receive_short::<Report>(socket));
        match received.await {
            Ok(Some((report, fds))) => (Ok(report), fds),
            Ok(None) => (Err("its supervisor died".into()), Vec::new()),
            Err(error) => (Err(format!("its supervisor died: {error}")), Vec::new()),
        }
    }

    fn take(&mut self, report: Result<Report, String>) {
        let (exited, end) = match report {
            Ok(Report::Terminal) => (None, None),
            Ok(Report::Supervisor { pid }) => {
                self.supervisor.0.store(pid, Ordering::Relaxed);
                (None, None)
            }
            Ok(Report::Idle) => {
                self.life = Life::Started;
                (None, None)
            }
            Ok(Report::Exited(exited)) => (Some(exited), None),
            Ok(Report::Gone { exited }) => (exited, Some(ProcessEvent::Gone)),
            Ok(Report::Failed { reason }) | Err(reason) => (None, Some(ProcessEvent::Lost { reason })),
        };
        if end.is_some() {
            self.life = Life::Ended;
        }
        let exited = exited.map(|exited| ProcessEvent::Exited(exited.into()));
        self.pending.extend(exited.into_iter().chain(end));
    }
}

impl From<Exited> for ExitReport {
    fn from(exited: Exited) -> Self {
        let status = exited.wait_status;
        Self {
            status: if libc::WIFSIGNALED(status) {
                ExitStatus::Signal(libc::WTERMSIG(status))
            } else {
                ExitStatus::Code(libc::WEXITSTATUS(status))
            },
            cpu: Duration::from_micros(exited.cpu_us),
            peak_memory_bytes: exited.peak_memory_kib * 1024,
        }
    }
}
