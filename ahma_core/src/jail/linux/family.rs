//! All processes of one operation on Linux. Its supervisor is the first process of a pid namespace or a child subreaper, so
//! every orphan below it becomes its child, and when it has no child nothing is left.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::process::Signal;

use super::{
    broker, cgroup::OperationCgroup, descendants, process_budget::ProcessBudget, wall::AllowedPaths,
};

/// The processes below a supervisor.
#[derive(Debug)]
pub(in crate::jail) struct LinuxFamily {
    reach: Reach,
    /// The cgroup of the command and its descendants, if one is delegated.
    cgroup: Option<OperationCgroup>,
    budget: ProcessBudget,
    /// In the core tier the command sends its listener of notified calls there, and these are the paths on which they
    /// are made for it.
    from_command: Option<(OwnedFd, AllowedPaths)>,
}

/// The way signals get to everything below the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As the first process of a pid namespace: everything in it.
    Namespace,
    /// By walking the tree of children.
    Tree,
}

impl LinuxFamily {
    pub(super) fn new(
        reach: Reach,
        cgroup: Option<OperationCgroup>,
        budget: ProcessBudget,
        from_command: Option<(OwnedFd, AllowedPaths)>,
    ) -> Self {
        Self {
            reach,
            cgroup,
            budget,
            from_command,
        }
    }

    /// Called once the command exists. The caller must not fork afterwards.
    pub(in crate::jail) fn begin(&mut self) -> io::Result<()> {
        match self.from_command.take() {
            Some((socket, allowed)) => broker::start(socket, allowed),
            None => Ok(()),
        }
    }

    /// Time until [`Self::is_too_large`] has to be asked again.
    pub(in crate::jail) fn next_count(&self) -> Option<Duration> {
        self.budget.next_count()
    }

    /// There are more processes than an operation may have.
    pub(in crate::jail) fn is_too_large(&mut self) -> bool {
        self.budget.is_exceeded()
    }

    pub(in crate::jail) fn signal_all(&self, signal: Signal) {
        if signal == Signal::KILL
            && let Some(cgroup) = &self.cgroup
        {
            cgroup.kill();
        }
        match self.reach {
            // Only the first process of a namespace may signal "everything": elsewhere that is the whole machine.
            Reach::Namespace if rustix::process::getpid().is_init() => {
                // SAFETY: takes two numbers.
                unsafe { libc::kill(-1, signal.as_raw()) };
            }
            Reach::Namespace | Reach::Tree if signal == Signal::KILL => descendants::kill_descendants(),
            Reach::Namespace | Reach::Tree => descendants::signal_descendants(signal),
        }
    }
}
