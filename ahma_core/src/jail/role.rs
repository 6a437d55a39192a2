//! The jail process: the hidden role of the binary.
//!
//! Single-threaded from `main` on, no runtime, no access to anything the policy does not name once the view is entered.
//! It sets up the sandbox that its first message describes and then does two things: for each request it starts a
//! supervisor, and it collects supervisors that have ended. When the server is gone it waits for the supervisors, which
//! stop by themselves, and wipes what the commands left in the private directory.

use std::{
    collections::HashSet,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    process::ExitCode,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags},
    process::Pid,
};

use super::{
    child,
    prepared::PreparedSandbox,
    seatbelt::program_role,
    strays::{Strays, Sweep},
    streams::Streams,
    supervisor,
    system::LightSupervisors,
    waiting,
    wall::Forked,
    wire::{self, Configure, Configured, Start},
};
use crate::sandbox::{self, held, removal};

/// The first argument that makes the binary a jail.
pub(super) use ahma_common::contract::JAIL_ROLE;

/// The path of a program may lead to a newer one after an upgrade, which may understand messages differently.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) const REPLACED: &str = "the program was replaced by another version: start the server again";

/// Interval of sweeps for what killed supervisors left, once the server is gone.
const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the jail if this process was started as one, or what stands in its place inside a sandbox of macOS. The first
/// thing `main` does, before any thread exists.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next()?;
    if role == program_role::PROGRAM_ROLE {
        return Some(program_role::run(arguments));
    }
    if role != JAIL_ROLE {
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
    held::close_inherited(&[server.as_raw_fd()])?;
    rustix::process::setsid().ok();
    let child_ended = waiting::block_signals()?;
    // After they are blocked: a broken pipe is an error here, not the end.
    waiting::reset_signals();
    let Some((configure, _)) = wire::receive::<Configure>(&server)? else {
        return Ok(());
    };
    let private = rustix::fs::open(
        &configure.policy.private,
        held::PASSED | OFlags::CLOEXEC,
        Mode::empty(),
    )?;

    if configure.version != VERSION {
        let reason = REPLACED.to_owned();
        return wire::send(&server, &Configured::Refused { reason }, &[]);
    }
    let mut built = PreparedSandbox::build(&configure);
    if configure.rehearse
        && let Ok(sandbox) = &mut built
        && let Err(reason) = sandbox.wall.rehearse()
    {
        built = Err(reason);
    }
    let sandbox = match built {
        Ok(sandbox) => sandbox,
        Err(reason) => return wire::send(&server, &Configured::Refused { reason }, &[]),
    };
    sandbox.wall.seal()?;
    wire::send(
        &server,
        &Configured::Ready {
            landlock_abi: sandbox::landlock_abi(),
        },
        &[],
    )?;

    held::release_memory();
    // The server takes the end of this socket for the end of the jail, so it stays open.
    let mut supervisors = serve(sandbox, &server, &child_ended)?;
    // What a killed supervisor left becomes a child only when its own parent is gone, and the kernel's list of children
    // may miss one while others end: the sweep is repeated.
    while supervisors.reap(Sweep::Final) == Children::Alive {
        waiting::wait(&child_ended, None, Some(SWEEP_INTERVAL));
    }
    wipe(&private);
    Ok(())
}

/// Starts supervisors until the server is gone; returns those that still live.
fn serve(mut sandbox: PreparedSandbox, server: &OwnedFd, child_ended: &OwnedFd) -> io::Result<Supervisors> {
    let mut supervisors = Supervisors {
        alive: HashSet::new(),
        strays: Strays::of(&sandbox.wall),
        light: LightSupervisors::of(&sandbox, server, child_ended),
    };
    loop {
        let timeout = (!supervisors.strays.is_empty()).then_some(SWEEP_INTERVAL);
        waiting::wait(child_ended, Some(server), timeout);
        supervisors.reap(Sweep::Nothing);
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
        match supervisors.start(&mut sandbox, start, server, &control, fds) {
            Ok(pid) => {
                supervisors.alive.insert(pid);
                let supervisor = wire::Report::Supervisor {
                    pid: pid.as_raw_nonzero().get(),
                };
                // A server that is gone needs to know no more.
                wire::send(&control, &supervisor, &[]).ok();
                supervisors.strays.supervisor_started(pid, &sandbox.wall);
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

/// Children of the jail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    Alive,
    None,
}

/// The supervisors of this jail.
struct Supervisors {
    alive: HashSet<Pid>,
    strays: Strays,
    light: Option<LightSupervisors>,
}

impl Supervisors {
    /// Starts one for a new operation.
    fn start(
        &mut self,
        sandbox: &mut PreparedSandbox,
        start: Start,
        server: &OwnedFd,
        control: &OwnedFd,
        fds: Vec<OwnedFd>,
    ) -> io::Result<Pid> {
        if let Some(light) = &mut self.light
            && light.can_start(start)
        {
            return light.start(control, Streams::new(start, control, fds)?);
        }
        match sandbox.wall.fork_supervisor()? {
            Forked::Supervisor => child::never_return(|| {
                // Held open here it would keep the server from noticing that the jail is gone.
                drop(taken(server));
                supervisor::supervise(sandbox, start, taken(control), fds);
            }),
            Forked::Jail(pid) => Ok(pid),
        }
    }

    /// Collects those that have ended, and ends what killed ones have left.
    fn reap(&mut self, occasion: Sweep) -> Children {
        let mut sweep = occasion;
        let children = loop {
            let mut status = 0;
            // SAFETY: the pointer is to a live variable.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            match Pid::from_raw(pid.max(0)) {
                Some(pid) => {
                    if self.alive.remove(&pid) {
                        self.strays.supervisor_ended(pid);
                        if let Some(light) = &mut self.light {
                            light.ended(pid);
                        }
                    }
                    if occasion == Sweep::Nothing {
                        sweep = Sweep::AfterAnEnd;
                    }
                }
                None if pid == 0 => break Children::Alive,
                None => break Children::None,
            }
        };
        self.strays.sweep(&self.alive, sweep);
        match children {
            Children::None if self.strays.is_empty() => Children::None,
            Children::None | Children::Alive => Children::Alive,
        }
    }
}

/// Takes over a descriptor that the parent of this new process has borrowed.
fn taken(fd: &OwnedFd) -> OwnedFd {
    // SAFETY: only called in a new process inside `child::never_return`, so not even a panic gets to where the one that
    // was borrowed would be used or dropped.
    unsafe { OwnedFd::from_raw_fd(fd.as_raw_fd()) }
}

/// Empties the private directory. It is reached by the descriptor opened before the view was entered, below which
/// nothing is mounted: the scope cannot be met on the way, wherever the view shows it.
fn wipe(private: &OwnedFd) {
    // What is left is removed by the server, or by the next one.
    removal::empty(private).ok();
}
