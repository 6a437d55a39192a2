//! The server's hold on one operation's owner.

use std::{collections::VecDeque, io, os::fd::OwnedFd, time::Duration};

use tokio::io::{Interest, unix::AsyncFd};

use super::wire::{self, Exited, Order, Report};

/// Holds on to a command. Dropping it stops the command with everything it started.
#[derive(Debug)]
pub struct ProcessHandle {
    control: AsyncFd<OwnedFd>,
    waiting: VecDeque<ProcessEvent>,
    ended: bool,
}

/// What a command's owner reports, in this order: at most one `Exited`, then exactly one `Gone` or `Lost`.
#[derive(Debug, Clone, PartialEq)]
pub enum ProcessEvent {
    /// The command itself has ended; what it left in the background may still run.
    Exited(ExitReport),
    /// Nothing of the command is left.
    Gone,
    /// The owner died without a report, or could not start the command. The command was killed, and what it had started
    /// was, or is about to be.
    Lost { reason: String },
}

/// What became of a request for a process. Unless it was made, `Lost` is the next event.
#[derive(Debug)]
pub(crate) enum Beginning {
    Made {
        /// If it was asked for.
        terminal: Option<OwnedFd>,
    },
    Failed {
        reason: String,
    },
    /// The owner, or the helper before it made one. The process has heard nothing, so nothing can have run.
    Died {
        reason: String,
    },
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

impl ProcessHandle {
    /// `control` must not block.
    pub(crate) fn new(control: OwnedFd) -> io::Result<Self> {
        // SAFETY: an OwnedFd always gives the same descriptor and keeps it open until it is dropped with the AsyncFd.
        let control = unsafe { AsyncFd::register_with_interest(control, Interest::READABLE) }?;
        Ok(Self {
            control,
            waiting: VecDeque::new(),
            ended: false,
        })
    }

    /// The next report. After `Gone` or `Lost` it never returns.
    pub async fn next_event(&mut self) -> ProcessEvent {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            if self.ended {
                std::future::pending::<()>().await;
            }
            let (report, _) = self.receive().await;
            self.take(report);
        }
    }

    /// Asks the owner to end everything: TERM, `grace`, KILL, until nothing is left. Returns at once; `Gone` follows.
    pub fn stop(&self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        // An owner that cannot be reached is gone already, and `next_event` says so.
        wire::send(self.control.get_ref(), &Order::Stop { grace_ms }, &[]).ok();
    }

    /// Waits until the owner has made its process, which in turn waits to hear what to run.
    pub(crate) async fn begin(&mut self) -> Beginning {
        let mut terminal = None;
        loop {
            let (report, fds) = self.receive().await;
            terminal = fds.into_iter().next().or(terminal);
            let beginning = match &report {
                Ok(Report::Begun) => Some(Beginning::Made {
                    terminal: terminal.take(),
                }),
                Ok(Report::Failed { reason }) => Some(Beginning::Failed {
                    reason: reason.clone(),
                }),
                Ok(Report::Terminal | Report::Exited(_) | Report::Gone { .. }) => None,
                Err(reason) => Some(Beginning::Died {
                    reason: reason.clone(),
                }),
            };
            self.take(report);
            if let Some(beginning) = beginning {
                return beginning;
            }
        }
    }

    async fn receive(&self) -> (Result<Report, String>, Vec<OwnedFd>) {
        let received = self
            .control
            .async_io(Interest::READABLE, |socket| wire::receive_short::<Report>(socket));
        match received.await {
            Ok(Some((report, fds))) => (Ok(report), fds),
            Ok(None) => (Err("its owner process died".into()), Vec::new()),
            Err(error) => (Err(format!("its owner process died: {error}")), Vec::new()),
        }
    }

    fn take(&mut self, report: Result<Report, String>) {
        let (exited, end) = match report {
            Ok(Report::Terminal | Report::Begun) => (None, None),
            Ok(Report::Exited(exited)) => (Some(exited), None),
            Ok(Report::Gone { exited }) => (exited, Some(ProcessEvent::Gone)),
            Ok(Report::Failed { reason }) | Err(reason) => (None, Some(ProcessEvent::Lost { reason })),
        };
        self.ended = end.is_some();
        let exited = exited.map(|exited| ProcessEvent::Exited(exited.into()));
        self.waiting.extend(exited.into_iter().chain(end));
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
