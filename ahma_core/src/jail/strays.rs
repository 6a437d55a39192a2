//! Processes that a killed supervisor leaves behind; the jail ends them.

use std::collections::HashSet;

use rustix::process::Pid;

#[cfg(target_os = "linux")]
use super::linux::strays::OrphanedChildren;
use super::{seatbelt::strays::MarkedStrays, wall::Wall};

/// The occasion of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    /// No child has ended.
    Nothing,
    AfterAnEnd,
    /// The server is gone.
    Final,
}

/// The strays of one jail.
#[derive(Debug)]
pub(super) enum Strays {
    #[cfg(target_os = "linux")]
    Linux(OrphanedChildren),
    Seatbelt(MarkedStrays),
}

impl Strays {
    pub(super) fn of(wall: &Wall) -> Self {
        match wall {
            #[cfg(target_os = "linux")]
            Wall::Linux(wall) => Self::Linux(OrphanedChildren::new(wall)),
            Wall::Seatbelt(wall) => Self::Seatbelt(MarkedStrays::new(wall)),
        }
    }

    /// A supervisor was started for the operation that `wall` has just begun.
    pub(super) fn supervisor_started(&mut self, supervisor: Pid, wall: &Wall) {
        match (self, wall) {
            (Self::Seatbelt(strays), Wall::Seatbelt(wall)) => strays.supervisor_started(supervisor, wall),
            #[cfg(target_os = "linux")]
            (Self::Linux(_), _) | (_, Wall::Linux(_)) => {}
        }
    }

    pub(super) fn supervisor_ended(&mut self, supervisor: Pid) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(strays) => strays.supervisor_ended(supervisor),
            Self::Seatbelt(strays) => strays.supervisor_ended(supervisor),
        }
    }

    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, reason = "strays are known by their mark there")
    )]
    /// Ends what is left. `supervisors` are the children that live on.
    pub(super) fn sweep(&mut self, supervisors: &HashSet<Pid>, sweep: Sweep) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(strays) => strays.sweep(supervisors, sweep),
            Self::Seatbelt(strays) => strays.sweep(),
        }
    }

    /// Nothing is left that is not a child of the jail.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(_) => true,
            Self::Seatbelt(strays) => strays.is_empty(),
        }
    }
}
