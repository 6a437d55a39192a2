//! The owner of one operation: a process that nothing it started can outlive, signal or escape.
//!
//! In the full tier it is the first process of a pid namespace, elsewhere a session leader and child subreaper; either
//! way every orphan below it becomes its child, so `wait` failing with `ECHILD` means that nothing is left. It stays
//! outside the Landlock domain of its command. It speaks to the server over one socket: it reports the command's end and
//! the end of everything, and it takes the order to stop. The socket closing is an order to stop as well.

use std::{
    fs, io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use ::landlock::RulesetCreated;
use rustix::{
    fs::{Mode, OFlags},
    process::{DumpableBehavior, Pid, Signal},
    termios::Winsize,
};

use super::{
    broker,
    cell::Cell,
    child::{self, Streams},
    children::{self, descendants, is_ready, population},
    population::Births,
    wire::{self, Exited, Order, Output, Report, Start},
};
use crate::sandbox::{
    Tier,
    linux::{namespaces, privileges},
};

/// How long processes may clean up when the server is gone and nobody can say otherwise.
const ORPHANED_GRACE: Duration = Duration::from_secs(2);

/// When the sweep first looks again for processes that were born while it killed. Each time after that it waits twice as
/// long: what is left then hangs in the kernel.
const FIRST_SWEEP: Duration = Duration::from_millis(5);
const LONGEST_BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

/// RLIMIT_NPROC counts the processes of all operations together, for they share a user namespace. Where each operation
/// has a limit of its own, this many can reach it before they feel each other: more than run at once by default on a
/// machine of 16 cores, and few enough that all pid numbers of a machine are not theirs.
const OPERATIONS_AT_ONCE: u64 = 64;

/// How often the processes of an operation are counted where there is no wall.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// Owns one new process until nothing of it is left. The calling process has nothing else to do afterwards.
pub(super) fn own(mut cell: Cell, start: Start, control: OwnedFd, pipes: Vec<OwnedFd>) {
    match Owner::start(&mut cell, start, &control, pipes) {
        Ok(owner) => {
            wire::send(&control, &Report::Begun, &[]).ok();
            owner.run(Some(control));
        }
        Err(error) => {
            let failed = Report::Failed {
                reason: error.to_string(),
            };
            wire::send(&control, &failed, &[]).ok();
        }
    }
}

struct Owner {
    /// The process that waits and then becomes the command.
    command: Pid,
    reach: Reach,
    child_ended: OwnedFd,
    phase: Phase,
    max_processes: u32,
    counting: Counting,
    /// When the processes were counted last.
    counted: Instant,
    broker: Brokering,
    births: Arc<Births>,
}

/// Who sees to it that there are not too many processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counting {
    /// The kernel, by a limit.
    Kernel,
    /// The broker while there is one, else the owner itself, now and then.
    Owner,
}

/// Whether the calls of the command and all below it are answered.
enum Brokering {
    /// By a thread, until this descriptor hangs up.
    Serving { ended: OwnedFd },
    /// Not in this tier, or nobody is left to ask.
    Over,
}

/// How signals get to everything below the owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// As the first process of a pid namespace: everything in it.
    Namespace,
    /// By walking the tree of children.
    Tree,
}

#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// TERM was sent.
    Stopping {
        kill_at: Instant,
    },
    /// KILL was sent and is repeated until nothing is left.
    Killing {
        pause: Duration,
    },
}

impl Owner {
    fn start(cell: &mut Cell, start: Start, control: &OwnedFd, pipes: Vec<OwnedFd>) -> io::Result<Self> {
        rustix::process::setsid()?;
        let child_ended = children::block_signals()?;
        let ruleset = make_own_proc_and_ruleset(cell)?;
        let (reach, counting) = if cell.tier == Tier::Full {
            let counting = if limit_namespace(cell.max_processes) {
                let together = u64::from(cell.max_processes) * OPERATIONS_AT_ONCE;
                cell.process_limit = Some(together);
                Counting::Kernel
            } else if rustix::process::geteuid().is_root() {
                // RLIMIT_NPROC does not bind root.
                Counting::Owner
            } else {
                Counting::Kernel
            };
            (Reach::Namespace, counting)
        } else {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            (Reach::Tree, Counting::Owner)
        };
        if cell.tier == Tier::Core {
            // The broker must not be able to do more than those it acts for.
            privileges::drop_capabilities()?;
        }
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let streams = streams(start.output, control, pipes)?;
        let (from_command, to_owner) = match cell.tier {
            Tier::Core => {
                let (ours, theirs) = wire::pair()?;
                (Some(ours), Some(theirs))
            }
            Tier::Full | Tier::Off => (None, None),
        };
        // SAFETY: this process has one thread, so its copy may run any code.
        let command = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => child::never_return(|| {
                child::become_command(cell, ruleset, streams, to_owner, start.becomes);
            }),
            pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork gave no process"))?,
        };
        // The pipes close here, so that their end is the end of the command and its children.
        drop(streams);
        drop(to_owner);
        let births = Arc::new(Births::default());
        let broker = match from_command {
            Some(socket) => {
                let places = cell.places.clone();
                match broker::start(socket, places, cell.max_processes, Arc::clone(&births)) {
                    Ok(ended) => Brokering::Serving { ended },
                    Err(error) => {
                        // It has not heard yet what to run.
                        rustix::process::kill_process(command, Signal::KILL).ok();
                        return Err(error);
                    }
                }
            }
            None => Brokering::Over,
        };
        Ok(Self {
            command,
            reach,
            child_ended,
            phase: Phase::Running,
            max_processes: cell.max_processes,
            counting,
            counted: Instant::now(),
            broker,
            births,
        })
    }

    fn run(mut self, mut control: Option<OwnedFd>) {
        loop {
            let report = self.reap();
            if let (Some(report), Some(control)) = (&report, &control) {
                wire::send(control, report, &[]).ok();
            }
            if matches!(report, Some(Report::Gone { .. })) {
                return;
            }
            self.wait(control.as_ref());
            if let Brokering::Serving { ended } = &self.broker
                && is_ready(ended)
            {
                self.broker = Brokering::Over;
            }
            if let Some(socket) = &control {
                match next_order(socket) {
                    Ok(Some(Order::Stop { grace_ms })) => self.stop(Duration::from_millis(grace_ms)),
                    Ok(None) => {
                        self.stop(ORPHANED_GRACE);
                        control = None;
                    }
                    Err(_) => {}
                }
            }
            self.advance();
        }
    }

    /// Collects every child that has ended, and says what the server should hear of it.
    fn reap(&self) -> Option<Report> {
        let mut exited = None;
        loop {
            let mut status = 0;
            // SAFETY: a zeroed rusage is a valid one; its fields are plain numbers.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live variables.
            let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
            match pid {
                0 => return exited.map(Report::Exited),
                -1 => return Some(Report::Gone { exited }),
                pid if pid == self.command.as_raw_nonzero().get() => {
                    exited = Some(Exited {
                        wait_status: status,
                        cpu_us: microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
                        peak_memory_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
                    });
                }
                _ => {}
            }
        }
    }

    /// Sleeps until a child ends, the server speaks, or the phase has to move on.
    fn wait(&self, control: Option<&OwnedFd>) {
        let patience = match self.phase {
            Phase::Running if self.has_to_count() => Some(COUNT_INTERVAL),
            Phase::Running => None,
            Phase::Stopping { kill_at } => Some(kill_at.saturating_duration_since(Instant::now())),
            Phase::Killing { pause } => Some(pause),
        };
        let broker = match &self.broker {
            Brokering::Serving { ended } => Some(ended),
            _ => None,
        };
        // What ended is found by `reap`.
        children::wait(&self.child_ended, control.into_iter().chain(broker), patience);
    }

    fn stop(&mut self, grace: Duration) {
        if matches!(self.phase, Phase::Running) {
            self.signal_all(Signal::TERM);
            // A stopped process would sleep through TERM.
            self.signal_all(Signal::CONT);
            self.phase = Phase::Stopping {
                kill_at: Instant::now() + grace,
            };
        }
    }

    fn advance(&mut self) {
        match self.phase {
            Phase::Running => {
                if self.has_to_count() && self.counted.elapsed() >= COUNT_INTERVAL {
                    self.counted = Instant::now();
                    if population() > self.max_processes as usize {
                        self.kill();
                    }
                }
            }
            Phase::Stopping { kill_at } if Instant::now() < kill_at => {}
            Phase::Stopping { .. } | Phase::Killing { .. } => self.kill(),
        }
    }

    fn kill(&mut self) {
        let pause = match self.phase {
            Phase::Killing { pause } => (pause * 2).min(LONGEST_BETWEEN_SWEEPS),
            Phase::Running | Phase::Stopping { .. } => FIRST_SWEEP,
        };
        self.phase = Phase::Killing { pause };
        self.births.refuse();
        self.signal_all(Signal::KILL);
    }

    /// Whether nobody else sees to it that there are not too many processes.
    fn has_to_count(&self) -> bool {
        self.counting == Counting::Owner && matches!(self.broker, Brokering::Over)
    }

    fn signal_all(&self, signal: Signal) {
        match self.reach {
            // Only the first process of a namespace may say "everything": elsewhere it would mean the whole machine.
            Reach::Namespace if rustix::process::getpid().is_init() => {
                // SAFETY: takes two numbers.
                unsafe { libc::kill(-1, signal.as_raw()) };
            }
            Reach::Namespace | Reach::Tree => {
                for pid in descendants() {
                    rustix::process::kill_process(pid, signal).ok();
                }
            }
        }
    }
}

/// What the wall of one operation needs besides what the jail has prepared.
pub(super) fn make_own_proc_and_ruleset(cell: &mut Cell) -> io::Result<Option<RulesetCreated>> {
    if cell.tier == Tier::Full {
        namespaces::mount_own_proc().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot mount a /proc of its own: {error}"))
        })?;
    }
    cell.ruleset()
}

/// A terminal without a size makes programs break lines anywhere, or draw nothing. This one holds a bar and a path.
const TERMINAL_SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// The command's streams. A pseudo-terminal's other end goes to the server.
fn streams(output: Output, control: &OwnedFd, pipes: Vec<OwnedFd>) -> io::Result<Streams> {
    let mut pipes = pipes.into_iter();
    let mut next = || {
        pipes
            .next()
            .ok_or_else(|| io::Error::other("a descriptor is missing"))
    };
    let script = next()?;
    Ok(match output {
        Output::Merged => {
            let stdout = next()?;
            let stderr = rustix::io::fcntl_dupfd_cloexec(&stdout, 3)?;
            Streams {
                script,
                stdout,
                stderr,
                terminal: false,
            }
        }
        Output::Separate => Streams {
            script,
            stdout: next()?,
            stderr: next()?,
            terminal: false,
        },
        Output::Pty => {
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            let master = rustix::fs::open("/dev/ptmx", flags, Mode::empty())?;
            rustix::pty::unlockpt(&master)?;
            let open = rustix::pty::OpenptFlags::RDWR
                | rustix::pty::OpenptFlags::NOCTTY
                | rustix::pty::OpenptFlags::CLOEXEC;
            let stdout = rustix::pty::ioctl_tiocgptpeer(&master, open)?;
            rustix::termios::tcsetwinsize(&stdout, TERMINAL_SIZE)?;
            let stderr = rustix::io::fcntl_dupfd_cloexec(&stdout, 3)?;
            wire::send(control, &Report::Terminal, &[master.as_fd()])?;
            Streams {
                script,
                stdout,
                stderr,
                terminal: true,
            }
        }
    })
}

/// Reads an order if one has come, without waiting. `None` means that the server is gone.
fn next_order(control: &OwnedFd) -> io::Result<Option<Order>> {
    if !is_ready(control) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Ok(wire::receive_short(control)?.map(|(order, _)| order))
}

/// Caps the processes of this pid namespace, for root too; says whether the kernel allowed it. The setting belongs to the
/// namespace since Linux 6.14; before that it is the whole machine's and must not be touched.
fn limit_namespace(max_processes: u32) -> bool {
    let release = rustix::system::uname();
    let mut numbers = release
        .release()
        .to_bytes()
        .split(|byte| !byte.is_ascii_digit())
        .map(|digits| {
            std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| digits.parse::<u32>().ok())
                .unwrap_or(0)
        });
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 14) && fs::write("/proc/sys/kernel/pid_max", max_processes.max(301).to_string()).is_ok()
}

fn microseconds(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}
