//! Confinement of a new process on Linux, put on by itself before it becomes the command.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    rc::Rc,
};

use ::landlock::RulesetCreated;
use rustix::process::{DumpableBehavior, Signal};
use seccompiler::BpfProgram;

use super::cgroup;
use crate::{
    jail::{prepared::SCRIPT_FD, wire},
    sandbox::linux::{privileges, seccomp},
};

/// The seccomp filters of commands.
#[derive(Debug)]
pub(super) struct CommandFilters {
    /// The one that the jail cannot put on itself.
    pub(super) command: BpfProgram,
    /// Calls that the broker answers in the core tier.
    pub(super) notification: BpfProgram,
}

/// Parts of one command's sandbox that the jail has not prepared.
pub(in crate::jail) struct LinuxConfinement {
    pub(super) cgroup: Option<PathBuf>,
    /// `RLIMIT_NPROC` of the command; `None` where the kernel would count unrelated processes.
    pub(super) process_limit: Option<u64>,
    pub(super) ruleset: Option<RulesetCreated>,
    /// `None` without a sandbox.
    pub(super) filters: Option<Rc<CommandFilters>>,
    /// In the core tier the listener of notified calls is sent there.
    pub(super) to_supervisor: Option<OwnedFd>,
}

impl LinuxConfinement {
    /// The first step: binds this process to its operation.
    pub(in crate::jail) fn join_operation(&self) -> io::Result<()> {
        if let Some(cgroup) = &self.cgroup {
            cgroup::enter(cgroup)?;
        }
        // The jail ends what a killed supervisor leaves; this does not depend on that.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        be_killed_first_when_memory_is_short()
    }

    /// The last step but for descriptors: takes every right away that the policy does not give.
    pub(in crate::jail) fn confine(self) -> io::Result<()> {
        if let Some(count) = self.process_limit {
            privileges::limit_processes(count)?;
        }
        rustix::thread::set_no_new_privs(true)?;
        if let Some(ruleset) = self.ruleset {
            // Restricts this thread, which is the only one.
            ruleset.restrict_self().map_err(io::Error::other)?;
        }
        let Some(filters) = self.filters else {
            return Ok(());
        };
        privileges::drop_capabilities()?;
        seccompiler::apply_filter(&filters.command).map_err(io::Error::other)?;
        if let Some(supervisor) = self.to_supervisor {
            let listener = seccomp::install_listener(&filters.notification)?;
            wire::send(&supervisor, &(), &[listener.as_fd()])?;
        }
        Ok(())
    }
}

/// Lets the kernel kill commands before their supervisor, which has to end what they started, or the server, which has to
/// restore protected files after them. Everything they start inherits this, and cannot write there.
fn be_killed_first_when_memory_is_short() -> io::Result<()> {
    // Only a dumpable process may write there. No command can attach meanwhile: they cannot signal or trace it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // Refused where a higher number is set already, which is as good.
    std::fs::write("/proc/self/oom_score_adj", "500").ok();
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::NotDumpable,
    )?)
}

/// Close-on-exec covers what is ours; this covers what was leaked into us.
pub(in crate::jail) fn close_all_but_script() -> io::Result<()> {
    for (first, last) in [(3, SCRIPT_FD as u32 - 1), (SCRIPT_FD as u32 + 1, u32::MAX)] {
        // SAFETY: nothing after this uses a descriptor outside the range that is kept.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
