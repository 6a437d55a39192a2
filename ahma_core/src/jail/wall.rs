//! The sandbox around commands, as one jail prepares it: the one seam between what all platforms do and what each does by
//! its own means. The tier decides, not the compiler, so that the way of macOS also runs where it can be tested.

use std::{convert::Infallible, io};

use rustix::process::Pid;

#[cfg(target_os = "linux")]
use super::linux::{confine::LinuxConfinement, wall::LinuxWall};
use super::{
    child,
    family::Family,
    prepared::PreparedSandbox,
    program::NotStarted,
    seatbelt::wall::{SeatbeltLaunch, SeatbeltWall},
    streams::Streams,
    wire::{Configure, ProcessKind},
};
use crate::sandbox::Tier;

/// A prepared sandbox. Copied by fork into every supervisor.
#[derive(Debug)]
pub(super) enum Wall {
    #[cfg(target_os = "linux")]
    Linux(Box<LinuxWall>),
    Seatbelt(SeatbeltWall),
}

/// Data with which a new process confines itself.
pub(super) enum Confinement {
    #[cfg(target_os = "linux")]
    Linux(LinuxConfinement),
    Seatbelt(SeatbeltLaunch),
}

/// The two processes after a fork.
pub(super) enum Forked {
    Supervisor,
    Jail(Pid),
}

impl Wall {
    /// Confines the calling process as far as the jail itself can live with, and prepares the rest.
    pub(super) fn build(configure: &Configure) -> Result<Self, String> {
        match (configure.tier, &configure.seatbelt) {
            (Tier::Seatbelt, _) => Ok(Self::Seatbelt(SeatbeltWall::build(configure)?)),
            (Tier::Off, Some(_)) => Ok(Self::Seatbelt(SeatbeltWall::open(configure)?)),
            #[cfg(target_os = "linux")]
            (Tier::Full | Tier::Core | Tier::Off, _) => {
                Ok(Self::Linux(Box::new(LinuxWall::build(configure)?)))
            }
            #[cfg(not(target_os = "linux"))]
            (Tier::Full | Tier::Core | Tier::Off, _) => {
                Err(format!("only Linux has the {} tier", configure.tier.name()))
            }
        }
    }

    /// Tries once what every supervisor will do for itself.
    pub(super) fn rehearse(&mut self) -> Result<(), String> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(wall) => wall.rehearse(),
            Self::Seatbelt(wall) => wall.rehearse(),
        }
    }

    /// Keeps others of the same user from looking into this process, where the system has a way.
    pub(super) fn seal(&self) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(wall) => wall.seal(),
            Self::Seatbelt(_) => Ok(()),
        }
    }

    /// Forks the process that becomes the supervisor of a new operation.
    pub(super) fn fork_supervisor(&mut self) -> io::Result<Forked> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(wall) => wall.fork_supervisor(),
            Self::Seatbelt(wall) => wall.fork_supervisor(),
        }
    }

    /// Makes what one operation needs besides what the jail has prepared. Called by its supervisor.
    pub(super) fn open_operation(&mut self) -> io::Result<(Family, Confinement)> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(wall) => {
                let (family, confinement) = wall.open_operation()?;
                Ok((Family::Linux(family), Confinement::Linux(confinement)))
            }
            Self::Seatbelt(wall) => {
                let (family, launch) = wall.open_operation()?;
                Ok((Family::Seatbelt(family), Confinement::Seatbelt(launch)))
            }
        }
    }
}

impl Confinement {
    /// Confines this process, which becomes a shell that waits for its script, or waits for a request and becomes the
    /// program it names. Returns only if that failed.
    pub(super) fn enter(
        self,
        sandbox: &PreparedSandbox,
        streams: Streams,
        kind: ProcessKind,
    ) -> Result<Infallible, NotStarted> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(confinement) => confinement.enter(sandbox, streams, kind),
            Self::Seatbelt(launch) => Err(child::not_started(launch.exec(sandbox, streams, kind))),
        }
    }
}

/// Makes sense of what a call like fork returned.
pub(super) fn forked(pid: i64) -> io::Result<Forked> {
    match i32::try_from(pid) {
        Ok(0) => Ok(Forked::Supervisor),
        Ok(pid) if pid > 0 => Pid::from_raw(pid)
            .map(Forked::Jail)
            .ok_or_else(|| io::Error::other("fork returned no process")),
        _ => Err(io::Error::last_os_error()),
    }
}
