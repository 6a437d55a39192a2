//! The jail process: the hidden role of the binary.
//!
//! Single-threaded from `main` on, no runtime, no access to anything the policy does not name once the view is entered.
//! It sets up the sandbox that its first message describes and then does two things: for each request it starts a
//! supervisor, and it collects supervisors that have ended. When the server is gone it waits for the supervisors, which
//! stop by themselves, and wipes what the commands left in the private directory.

use std::{
    collections::HashSet,
    io,
    os::fd::{AsFd, OwnedFd},
    process::ExitCode,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags},
    process::{DumpableBehavior, Pid, Signal, WaitOptions},
};

use super::{
    child,
    linux::{cgroup::DelegatedCgroup, descendants},
    prepared::PreparedSandbox,
    supervisor, waiting,
    wire::{self, Configure, Configured, Start},
};
use crate::sandbox::{Tier, linux::landlock, removal};

/// The first argument that makes the binary a jail.
pub(super) use ahma_common::contract::JAIL_ROLE;

/// Interval of sweeps for what killed supervisors left, once the server is gone.
const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the jail if this process was started as one. The first thing `main` does, before any thread exists.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).as_deref() != Some(JAIL_ROLE.as_ref()) {
        return None;
    }
    Some(match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn run() -> io::Result<()> {
    // The socket came as standard input; nothing that is started here may inherit it.
    let server = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty())?)?;
    rustix::process::setsid().ok();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let child_ended = waiting::block_signals()?;
    // After they are blocked: a broken pipe is an error here, not the end.
    waiting::reset_signals();
    let Some((configure, _)) = wire::receive::<Configure>(&server)? else {
        return Ok(());
    };
    let private = rustix::fs::open(
        &configure.policy.private,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?;

    let mut built = PreparedSandbox::build(&configure);
    if configure.rehearse
        && let Ok(sandbox) = &mut built
        && let Err(reason) = rehearse(sandbox)
    {
        built = Err(reason);
    }
    let sandbox = match built {
        Ok(sandbox) => sandbox,
        Err(reason) => return wire::send(&server, &Configured::Refused { reason }, &[]),
    };
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    wire::send(
        &server,
        &Configured::Ready {
            landlock_abi: landlock::kernel_abi(),
        },
        &[],
    )?;

    let mut supervisors = serve(sandbox, &server, &child_ended)?;
    drop(server);
    // What a killed supervisor left becomes a child only when its own parent is gone, and the kernel's list of children
    // may miss one while others end: the sweep is repeated.
    while supervisors.reap(Sweep::Always) == Children::Alive {
        waiting::wait(&child_ended, None, Some(SWEEP_INTERVAL));
    }
    wipe(&private);
    Ok(())
}

/// Makes once what every supervisor will make for itself. A tier that fails only there would be taken for one that works,
/// and then refuse every command.
fn rehearse(sandbox: &mut PreparedSandbox) -> Result<(), String> {
    if sandbox.tier != Tier::Full {
        return Ok(());
    }
    let text = |error: io::Error| error.to_string();
    let (ours, theirs) = wire::pair().map_err(text)?;
    let pid = match fork_supervisor(sandbox.tier).map_err(text)? {
        Forked::Supervisor => child::never_return(|| {
            let done = supervisor::make_own_proc_and_ruleset(sandbox).map_err(text);
            wire::send(&theirs, &done.map(drop), &[]).ok();
        }),
        Forked::Jail(pid) => pid,
    };
    drop(theirs);
    let done = wire::receive_short::<Result<(), String>>(&ours).map_err(text)?;
    rustix::process::waitpid(Some(pid), WaitOptions::empty()).ok();
    match done {
        Some((done, _)) => done,
        None => Err("the first process of a pid namespace died".to_owned()),
    }
}

/// Starts supervisors until the server is gone; returns those that still live.
fn serve(sandbox: PreparedSandbox, server: &OwnedFd, child_ended: &OwnedFd) -> io::Result<Supervisors> {
    let mut supervisors = Supervisors {
        alive: HashSet::new(),
        ended: Vec::new(),
        cgroup: sandbox.cgroup.clone(),
    };
    let while_serving = match sandbox.tier {
        // Nothing outlives the first process of its namespace.
        Tier::Full => Sweep::Never,
        Tier::Core | Tier::Off => Sweep::IfAnyEnded,
    };
    loop {
        waiting::wait(child_ended, [server], None);
        supervisors.reap(while_serving);
        if !waiting::is_ready(server) {
            continue;
        }
        let Some((start, mut fds)) = wire::receive_short::<Start>(server)? else {
            return Ok(supervisors);
        };
        if fds.len() < 2 {
            continue;
        }
        let control = fds.remove(0);
        match fork_supervisor(sandbox.tier) {
            Ok(Forked::Supervisor) => child::never_return(|| {
                // Held open here it would keep the server from noticing that the jail is gone.
                close(server);
                supervisor::supervise(sandbox, start, control, fds);
            }),
            Ok(Forked::Jail(pid)) => {
                supervisors.alive.insert(pid);
                let supervisor = wire::Report::Supervisor {
                    pid: pid.as_raw_nonzero().get(),
                };
                // A server that is gone needs to know no more.
                wire::send(&control, &supervisor, &[]).ok();
            }
            Err(error) => {
                let failed = wire::Report::Failed {
                    reason: error.to_string(),
                };
                wire::send(&control, &failed, &[]).ok();
            }
        }
    }
}

enum Forked {
    Supervisor,
    Jail(Pid),
}

/// Forks the process that becomes a supervisor, in the full tier as the first one of a new pid namespace.
fn fork_supervisor(tier: Tier) -> io::Result<Forked> {
    let namespaces = if tier == Tier::Full {
        libc::CLONE_NEWPID | libc::CLONE_NEWNS
    } else {
        0
    };
    // SAFETY: without CLONE_VM and with no new stack this is fork with namespaces; the process has one thread, so its
    // copy may run any code.
    let pid = unsafe { libc::syscall(libc::SYS_clone, namespaces | libc::SIGCHLD, 0, 0, 0, 0) };
    match i32::try_from(pid) {
        Ok(0) => Ok(Forked::Supervisor),
        Ok(pid) if pid > 0 => Pid::from_raw(pid)
            .map(Forked::Jail)
            .ok_or_else(|| io::Error::other("clone gave no process")),
        _ => Err(io::Error::last_os_error()),
    }
}

/// When to look for processes that a killed supervisor left behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Never,
    IfAnyEnded,
    Always,
}

/// Children of the jail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    Alive,
    None,
}

/// The supervisors of this jail.
struct Supervisors {
    alive: HashSet<Pid>,
    /// Those whose cgroup is still to be removed.
    ended: Vec<Pid>,
    cgroup: Option<DelegatedCgroup>,
}

impl Supervisors {
    /// Collects those that have ended. One of the core tier that was killed leaves its processes to the jail, which ends
    /// them.
    fn reap(&mut self, sweep: Sweep) -> Children {
        let mut has_ended = false;
        let children = loop {
            let mut status = 0;
            // SAFETY: the pointer is to a live variable.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            match Pid::from_raw(pid.max(0)) {
                Some(pid) => {
                    if self.alive.remove(&pid) {
                        self.ended.push(pid);
                    }
                    has_ended = true;
                }
                None if pid == 0 => break Children::Alive,
                None => break Children::None,
            }
        };
        let is_due = match sweep {
            Sweep::Never => false,
            Sweep::IfAnyEnded => has_ended,
            Sweep::Always => true,
        };
        if children == Children::Alive && is_due {
            for stray in descendants::children_of(rustix::process::getpid()) {
                if !self.alive.contains(&stray) {
                    rustix::process::kill_process(stray, Signal::KILL).ok();
                }
            }
        }
        match &self.cgroup {
            // One with strays in it is removed when they have ended.
            Some(cgroup) => self.ended.retain(|pid| !cgroup.remove(*pid)),
            None => self.ended.clear(),
        }
        children
    }
}

fn close(fd: &OwnedFd) {
    use std::os::fd::AsRawFd;
    // SAFETY: only called in a new process inside `child::never_return`, so not even a panic gets to where the
    // `OwnedFd` would be used or dropped again.
    unsafe { libc::close(fd.as_fd().as_raw_fd()) };
}

/// Empties the private directory. It is reached by the descriptor opened before the view was entered, below which
/// nothing is mounted: the scope cannot be met on the way, wherever the view shows it.
fn wipe(private: &OwnedFd) {
    // What is left is removed by the server, or by the next one.
    removal::empty(private).ok();
}
