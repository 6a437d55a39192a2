//! The supervisor of one operation: a process that starts one command, reports its exit and ends its whole process tree.
//!
//! On Linux it is the first process of a pid namespace, or a session leader and child subreaper; either way every orphan
//! below it becomes its child, so `wait` failing with `ECHILD` means that nothing is left. Elsewhere orphans are found by
//! the mark of their sandbox ([`Family`]). It stays outside the sandbox of its command, which cannot signal it. Over one
//! socket it reports to the server and takes the instruction to stop. The socket closing is an instruction to stop as well.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};

use super::{
    child::{self, never_return},
    family::Family,
    prepared::PreparedSandbox,
    streams::Streams,
    waiting::{self, is_ready},
    wire::{self, Exited, Instruction, Report, Start},
};
use crate::sandbox::held;

/// Time that processes have to clean up when the server is gone.
const ORPHANED_GRACE: Duration = Duration::from_secs(2);

/// Time between two sweeps; it doubles from one to the next, as what is left after a few is stuck in the kernel. The end
/// of a child starts the next sweep at once.
const FIRST_SWEEP_INTERVAL: Duration = Duration::from_millis(5);
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Supervises one new process until nothing of it is left. The calling process has nothing else to do afterwards.
pub(super) fn supervise(sandbox: &mut PreparedSandbox, start: Start, control: OwnedFd, fds: Vec<OwnedFd>) {
    match start_command(sandbox, start, &control, fds) {
        Ok((command, family, child_ended)) => supervise_started(command, family, child_ended, control),
        Err(error) => {
            let reason = error.to_string();
            wire::send(&control, &Report::Failed { reason }, &[]).ok();
        }
    }
}

/// The same for a command that was started already. In the full tier the process may not allocate memory.
pub(super) fn supervise_started(command: Pid, family: Family, child_ended: OwnedFd, control: OwnedFd) {
    wire::send(&control, &Report::Idle, &[]).ok();
    let supervisor = Supervisor {
        command,
        family,
        child_ended,
        phase: SupervisorPhase::Running,
    };
    supervisor.run(control);
}

/// Starts the process that waits and then becomes the command. Returns what tells of its end, too.
fn start_command(
    sandbox: &mut PreparedSandbox,
    start: Start,
    control: &OwnedFd,
    fds: Vec<OwnedFd>,
) -> io::Result<(Pid, Family, OwnedFd)> {
    rustix::process::setsid()?;
    let child_ended = waiting::block_signals()?;
    let (mut family, confinement) = sandbox.wall.open_operation()?;
    let streams = Streams::new(start, control, fds)?;
    // SAFETY: this process has one thread, so its copy may run any code.
    let command = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => never_return(|| {
            child::become_command(sandbox, confinement, streams, start.kind);
        }),
        pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no process"))?,
    };
    // Closed here, so that the end of the output is the end of the command and its children.
    drop((confinement, streams));
    if let Err(error) = family.begin(command, control) {
        // It has not been told yet what to run.
        rustix::process::kill_process(command, Signal::KILL).ok();
        return Err(error);
    }
    Ok((command, family, child_ended))
}

struct Supervisor {
    /// The process that waits and then becomes the command.
    command: Pid,
    family: Family,
    child_ended: OwnedFd,
    phase: SupervisorPhase,
}

#[derive(Clone, Copy)]
enum SupervisorPhase {
    Running,
    /// A signal was sent to which processes can react.
    Stopping {
        /// None if it was TERM.
        terminate_at: Option<Instant>,
        kill_at: Instant,
    },
    /// KILL was sent and is repeated until nothing is left.
    Killing {
        interval: Duration,
    },
}

impl Supervisor {
    /// Nothing in here allocates memory on Linux in the full tier.
    fn run(mut self, control: OwnedFd) {
        let mut control = Some(control);
        loop {
            let report = self.reap();
            if let (Some(report), Some(control)) = (&report, &control) {
                wire::send(control, report, &[]).ok();
            }
            if matches!(report, Some(Report::Gone { .. })) {
                return;
            }
            // What ended is found by `reap`.
            waiting::wait(&self.child_ended, control.as_ref(), self.timeout());
            if let Some(socket) = &control {
                match next_instruction(socket) {
                    Ok(Some(Instruction::Stop { signal, grace_ms })) => {
                        self.stop(signal, Duration::from_millis(grace_ms));
                    }
                    Ok(None) => {
                        self.stop(libc::SIGTERM, ORPHANED_GRACE);
                        control = None;
                    }
                    Err(_) => {}
                }
            }
            self.advance();
        }
    }

    /// Collects every child that has ended, and returns the report that this calls for.
    fn reap(&mut self) -> Option<Report> {
        let mut exited = None;
        loop {
            let mut status = 0;
            // SAFETY: a zeroed rusage is a valid one; its fields are plain numbers.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live variables.
            let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
            match pid {
                0 => return exited.map(Report::Exited),
                -1 if self.family.is_empty() => return Some(Report::Gone { exited }),
                -1 => return exited.map(Report::Exited),
                pid if pid == self.command.as_raw_nonzero().get() => {
                    self.family.command_ended();
                    exited = Some(Exited {
                        wait_status: status,
                        cpu_us: microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
                        peak_memory_kib: held::peak_memory_kib(&usage),
                    });
                }
                _ => {}
            }
        }
    }

    /// Time until [`Self::advance`] has something to do.
    fn timeout(&self) -> Option<Duration> {
        match self.phase {
            SupervisorPhase::Running => self.family.next_look(),
            SupervisorPhase::Stopping {
                terminate_at,
                kill_at,
            } => {
                let next = terminate_at.unwrap_or(kill_at);
                let left = next.saturating_duration_since(Instant::now());
                Some(self.family.look_for_end().map_or(left, |look| look.min(left)))
            }
            SupervisorPhase::Killing { interval } => Some(interval),
        }
    }

    fn advance(&mut self) {
        match self.phase {
            SupervisorPhase::Running if !self.family.is_too_large() => {}
            SupervisorPhase::Stopping {
                terminate_at: Some(at),
                kill_at,
            } if at <= Instant::now() => {
                self.signal_stopped(Signal::TERM);
                self.phase = SupervisorPhase::Stopping {
                    terminate_at: None,
                    kill_at,
                };
            }
            SupervisorPhase::Stopping { kill_at, .. } if Instant::now() < kill_at => {}
            SupervisorPhase::Running | SupervisorPhase::Stopping { .. } => self.kill(FIRST_SWEEP_INTERVAL),
            SupervisorPhase::Killing { interval } => self.kill((interval * 2).min(MAX_SWEEP_INTERVAL)),
        }
    }

    /// Begins to stop everything. A server that goes away meanwhile changes nothing.
    fn stop(&mut self, signal: i32, grace: Duration) {
        if !matches!(self.phase, SupervisorPhase::Running) {
            return;
        }
        let signal = Signal::from_named_raw(signal).unwrap_or(Signal::TERM);
        if signal == Signal::KILL {
            return self.kill(FIRST_SWEEP_INTERVAL);
        }
        self.signal_stopped(signal);
        let now = Instant::now();
        self.phase = SupervisorPhase::Stopping {
            terminate_at: (signal != Signal::TERM).then(|| now + grace / 2),
            kill_at: now + grace,
        };
    }

    /// A stopped process would sleep through the signal.
    fn signal_stopped(&self, signal: Signal) {
        self.family.signal_all(signal);
        self.family.signal_all(Signal::CONT);
    }

    fn kill(&mut self, interval: Duration) {
        self.phase = SupervisorPhase::Killing { interval };
        self.family.signal_all(Signal::KILL);
    }
}

/// Reads an instruction if one has come, without waiting. `None` means that the server is gone.
fn next_instruction(control: &OwnedFd) -> io::Result<Option<Instruction>> {
    if !is_ready(control) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Ok(wire::receive_short(control)?.map(|(instruction, _)| instruction))
}

fn microseconds(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}
