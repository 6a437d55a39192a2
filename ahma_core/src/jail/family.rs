//! Everything that one operation has started, and its supervisor ends.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::process::{Pid, Signal};

#[cfg(target_os = "linux")]
use super::linux::family::LinuxFamily;
use super::seatbelt::family::MarkedFamily;

/// The command and its descendants.
#[derive(Debug)]
pub(super) enum Family {
    #[cfg(target_os = "linux")]
    Linux(LinuxFamily),
    Seatbelt(MarkedFamily),
}

impl Family {
    /// Called once the command exists; returns when it is known to be confined. `control` closing ends the wait. The
    /// caller must not fork afterwards.
    pub(super) fn begin(&mut self, command: Pid, control: &OwnedFd) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(family) => family.begin(),
            Self::Seatbelt(family) => family.begin(command, control),
        }
    }

    /// The supervisor's own child, the command, has been collected.
    pub(super) fn command_ended(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(_) => {}
            Self::Seatbelt(family) => family.command_ended(),
        }
    }

    /// Time until the supervisor has to look again, if nothing else wakes it.
    pub(super) fn next_look(&self) -> Option<Duration> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(family) => family.next_count(),
            Self::Seatbelt(family) => family.next_look(),
        }
    }

    /// Time until it has to look whether what a command has left behind is gone; none if that wakes it.
    pub(super) fn look_for_end(&self) -> Option<Duration> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(_) => None,
            Self::Seatbelt(family) => family.look_for_end(),
        }
    }

    /// There are more processes than an operation may have.
    pub(super) fn is_too_large(&mut self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(family) => family.is_too_large(),
            Self::Seatbelt(family) => family.is_too_large(),
        }
    }

    /// Nothing is left. Asked when the supervisor has no child any more.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            // Every orphan is a child of its supervisor.
            #[cfg(target_os = "linux")]
            Self::Linux(_) => true,
            Self::Seatbelt(family) => family.is_empty(),
        }
    }

    pub(super) fn signal_all(&self, signal: Signal) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(family) => family.signal_all(signal),
            Self::Seatbelt(family) => family.signal_all(signal),
        }
    }
}
