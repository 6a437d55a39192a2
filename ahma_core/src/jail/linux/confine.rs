//! Confinement of a new process on Linux, put on by itself before it becomes the command.

use std::{
    convert::Infallible,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    rc::Rc,
};

use rustix::{
    fs::{Mode, OFlags},
    process::{DumpableBehavior, Pid, Signal},
};
use seccompiler::BpfProgram;

use super::{cgroup, stack_text::StackText};
use crate::{
    jail::{
        child,
        prepared::{PreparedSandbox, SCRIPT_FD},
        program::{self, NotStarted},
        streams::Streams,
        wire::{self, ProcessKind},
    },
    sandbox::linux::{landlock::Ruleset, privileges, seccomp},
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
    pub(super) ruleset: Option<Ruleset>,
    /// `None` without a sandbox.
    pub(super) filters: Option<Rc<CommandFilters>>,
    /// In the core tier the listener of notified calls is sent there.
    pub(super) to_supervisor: Option<OwnedFd>,
}

impl LinuxConfinement {
    /// Confines this process, which becomes a shell, or the program of a request. Returns only if that failed.
    pub(in crate::jail) fn enter(
        self,
        sandbox: &PreparedSandbox,
        streams: Streams,
        kind: ProcessKind,
    ) -> Result<Infallible, NotStarted> {
        let defaults = &sandbox.defaults;
        let script = self.confine(sandbox, streams).map_err(child::not_started)?;
        match kind {
            ProcessKind::Shell => {
                // The shell opens the descriptor by its number.
                std::mem::forget(script);
                let error = child::exec(&defaults.shell, &defaults.arguments, &defaults.environment);
                Err(child::not_started(error))
            }
            ProcessKind::Program => program::exec_requested(defaults, script),
        }
    }

    /// Confines this process and returns the pipe from which it reads what to run.
    fn confine(self, sandbox: &PreparedSandbox, streams: Streams) -> io::Result<OwnedFd> {
        self.join_operation()?;
        child::unblock_signals();
        let script = child::take_streams(streams)?;
        std::env::set_current_dir(&sandbox.scope)?;
        self.take_rights()?;
        // Last, when no other descriptor is held that might have its number.
        let script = child::place(script, SCRIPT_FD)?;
        close_all_but_script()?;
        Ok(script)
    }

    /// The first step: binds this process to its operation.
    fn join_operation(&self) -> io::Result<()> {
        if let Some(cgroup) = &self.cgroup {
            cgroup::enter(cgroup)?;
        }
        // The jail ends what a killed supervisor leaves; this does not depend on that.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        be_killed_first_when_memory_is_short()
    }

    /// The last step but for descriptors: takes every right away that the policy does not give.
    fn take_rights(self) -> io::Result<()> {
        take_rights(self.process_limit, self.ruleset.as_ref(), self.filters.as_deref())?;
        if let (Some(supervisor), Some(filters)) = (self.to_supervisor, self.filters) {
            let listener = seccomp::install_listener(&filters.notification)?;
            wire::send(&supervisor, &(), &[listener.as_fd()])?;
        }
        Ok(())
    }
}

/// Takes every right away that the policy does not give. Allocates no memory.
pub(super) fn take_rights(
    process_limit: Option<u64>,
    ruleset: Option<&Ruleset>,
    filters: Option<&CommandFilters>,
) -> io::Result<()> {
    if let Some(count) = process_limit {
        privileges::limit_processes(count)?;
    }
    rustix::thread::set_no_new_privs(true)?;
    if let Some(ruleset) = ruleset {
        // Restricts this thread, which is the only one.
        ruleset.restrict_self()?;
    }
    let Some(filters) = filters else {
        return Ok(());
    };
    privileges::drop_capabilities()?;
    seccompiler::apply_filter(&filters.command).map_err(|error| match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
        _ => io::ErrorKind::Other.into(),
    })
}

const OUT_OF_MEMORY_SCORE: &str = "500";

/// Lets the kernel kill commands before their supervisor, which has to end what they started, or the server, which has to
/// restore protected files after them. Everything they start inherits this, and cannot write there.
fn be_killed_first_when_memory_is_short() -> io::Result<()> {
    // Only a dumpable process may write there. No command can attach meanwhile: they cannot signal or trace it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // Refused where a higher number is set already, which is as good.
    std::fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE).ok();
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::NotDumpable,
    )?)
}

/// The same, done by the supervisor for a shell that waits for what to run. Allocates no memory.
pub(super) fn let_kill_first(shell: Pid) {
    let path = StackText::<32>::of(format_args!("/proc/{}/oom_score_adj", shell.as_raw_nonzero()));
    let file = rustix::fs::open(path.as_str(), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    if let Ok(file) = file {
        rustix::io::write(file, OUT_OF_MEMORY_SCORE.as_bytes()).ok();
    }
}

/// Close-on-exec covers what is ours; this covers what was leaked into us.
pub(super) fn close_all_but_script() -> io::Result<()> {
    for (first, last) in [(3, SCRIPT_FD as u32 - 1), (SCRIPT_FD as u32 + 1, u32::MAX)] {
        // SAFETY: nothing after this uses a descriptor outside the range that is kept.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
