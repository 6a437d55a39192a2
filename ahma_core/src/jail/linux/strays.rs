//! Processes that a killed supervisor leaves to the jail, which is a child subreaper.

use std::collections::HashSet;

use rustix::process::{Pid, Signal};

use super::{cgroup::DelegatedCgroup, descendants, wall::LinuxWall};
use crate::{jail::strays::Sweep, sandbox::Tier};

/// Processes that supervisors left behind, and their cgroups.
#[derive(Debug)]
pub(in crate::jail) struct OrphanedChildren {
    /// Nothing outlives the first process of its namespace.
    are_killed_by_kernel: bool,
    cgroup: Option<DelegatedCgroup>,
    /// Supervisors whose cgroup is still to be removed.
    ended: Vec<Pid>,
}

impl OrphanedChildren {
    pub(in crate::jail) fn new(wall: &LinuxWall) -> Self {
        Self {
            are_killed_by_kernel: wall.tier == Tier::Full,
            cgroup: wall.cgroup.clone(),
            ended: Vec::new(),
        }
    }

    pub(in crate::jail) fn supervisor_ended(&mut self, supervisor: Pid) {
        self.ended.push(supervisor);
    }

    /// Kills every child that is no supervisor, and removes the cgroups that are empty by now.
    pub(in crate::jail) fn sweep(&mut self, supervisors: &HashSet<Pid>, sweep: Sweep) {
        let is_due = match sweep {
            Sweep::AfterAnEnd => !self.are_killed_by_kernel,
            Sweep::Final => true,
            Sweep::Nothing => false,
        };
        if is_due {
            for stray in descendants::children_of(rustix::process::getpid()) {
                if !supervisors.contains(&stray) {
                    rustix::process::kill_process(stray, Signal::KILL).ok();
                }
            }
        }
        match &self.cgroup {
            // One with strays in it is removed when they have ended.
            Some(cgroup) => self.ended.retain(|pid| !cgroup.remove(*pid)),
            None => self.ended.clear(),
        }
    }
}
