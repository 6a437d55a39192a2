//! The last steps of a new process before it becomes the command: descriptors, limits, confinement, `execve`.
//!
//! Runs in a fork of a single-threaded process, so ordinary code is allowed. Every failure ends the process: a command
//! that is not confined as promised is never started.

use std::{
    ffi::{CStr, CString},
    io::{self, Write},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    ptr,
};

use ::landlock::RulesetCreated;
use rustix::{
    fs::{Mode, OFlags},
    io::FdFlags,
    process::{DumpableBehavior, Signal},
};

use super::{
    linux::cgroup::OperationCgroup,
    prepared::{PreparedSandbox, SCRIPT_FD},
    program::{self, NotStarted},
    streams::Streams,
    wire::{self, ProcessKind},
};
use crate::sandbox::{
    Tier,
    linux::{privileges, seccomp},
};

/// Exit code of a process that never became a command.
const CANNOT_START: i32 = 126;

/// Parts of one command's sandbox that the jail has not prepared.
pub(super) struct CommandResources<'a> {
    pub(super) cgroup: Option<&'a OperationCgroup>,
    pub(super) ruleset: Option<RulesetCreated>,
    pub(super) streams: Streams,
    /// In the core tier the listener of notified calls is sent there.
    pub(super) supervisor: Option<OwnedFd>,
}

/// Becomes a shell that waits for its script, or waits for a request and becomes the program it names.
pub(super) fn become_command(sandbox: &PreparedSandbox, resources: CommandResources<'_>, kind: ProcessKind) {
    let failed = |error: io::Error| NotStarted {
        code: CANNOT_START,
        reason: format!("the command could not be started: {error}"),
    };
    let Err(NotStarted { code, reason }) =
        confine(sandbox, resources)
            .map_err(failed)
            .and_then(|script| match kind {
                // The shell opens the descriptor by its number.
                ProcessKind::Shell => {
                    std::mem::forget(script);
                    Err(failed(exec(
                        &sandbox.shell,
                        &sandbox.arguments,
                        &sandbox.environment,
                    )))
                }
                ProcessKind::Program => program::exec_requested(sandbox, script),
            });
    // Standard error is the operation's output by now, or at worst the jail's own.
    writeln!(io::stderr(), "ahma_mcp: {reason}").ok();
    exit_now(code)
}

/// Runs the whole life of a new process, and ends it. The stack below is a copy of its parent's: a panic must not unwind
/// into it and act on what both of them hold.
pub(super) fn never_return(body: impl FnOnce()) -> ! {
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    exit_now(if ended.is_ok() { 0 } else { CANNOT_START })
}

/// Ends this process without running the destructors it shares with its parent.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Confines this process and returns the pipe from which it reads what to run.
fn confine(sandbox: &PreparedSandbox, resources: CommandResources<'_>) -> io::Result<OwnedFd> {
    let CommandResources {
        cgroup,
        ruleset,
        streams,
        supervisor,
    } = resources;
    if let Some(cgroup) = cgroup {
        cgroup.enter()?;
    }
    rustix::process::setsid()?;
    // The jail ends what a killed supervisor leaves; this does not depend on that.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    unblock_signals();
    be_killed_first_when_memory_is_short()?;
    let Streams {
        script,
        stdout,
        stderr,
        is_terminal,
    } = streams;
    rustix::stdio::dup2_stdin(rustix::fs::open(
        "/dev/null",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)?;
    rustix::stdio::dup2_stdout(&stdout)?;
    rustix::stdio::dup2_stderr(&stderr)?;
    if is_terminal {
        rustix::process::ioctl_tiocsctty(&stdout)?;
    }
    drop((stdout, stderr));
    std::env::set_current_dir(&sandbox.scope)?;
    if let Some(count) = sandbox.process_limit {
        privileges::limit_processes(count)?;
    }

    rustix::thread::set_no_new_privs(true)?;
    if let Some(ruleset) = ruleset {
        // Restricts this thread, which is the only one.
        ruleset.restrict_self().map_err(io::Error::other)?;
    }
    if sandbox.tier != Tier::Off {
        privileges::drop_capabilities()?;
        seccompiler::apply_filter(&sandbox.command_filter).map_err(io::Error::other)?;
    }
    if let Some(supervisor) = supervisor {
        let listener = seccomp::install_listener(&sandbox.notification_filter)?;
        wire::send(&supervisor, &(), &[listener.as_fd()])?;
    }
    // Last, when no other descriptor is held that might have its number.
    let script = place_script(script)?;
    close_everything_else()?;
    Ok(script)
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

/// The jail blocks signals; a command expects to get them.
fn unblock_signals() {
    // SAFETY: an empty set is a valid one, and it outlives the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Moves the script to the number at which a shell opens it.
fn place_script(script: OwnedFd) -> io::Result<OwnedFd> {
    if script.as_raw_fd() == SCRIPT_FD {
        // dup2 onto itself would leave the close-on-exec flag set.
        rustix::io::fcntl_setfd(&script, FdFlags::empty())?;
        return Ok(script);
    }
    // SAFETY: both are numbers; whatever has the target's is a leftover of the jail and is closed, which is meant.
    if unsafe { libc::dup2(script.as_raw_fd(), SCRIPT_FD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and not owned elsewhere.
    Ok(unsafe { OwnedFd::from_raw_fd(SCRIPT_FD) })
}

/// Close-on-exec covers what is ours; this covers what was leaked into us.
fn close_everything_else() -> io::Result<()> {
    for (first, last) in [(3, SCRIPT_FD as u32 - 1), (SCRIPT_FD as u32 + 1, u32::MAX)] {
        // SAFETY: nothing after this uses a descriptor outside the range that is kept.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Becomes another program. Returns only if that failed.
pub(super) fn exec(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        words
            .iter()
            .map(|word| word.as_ptr())
            .chain([ptr::null()])
            .collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: all strings end in NUL and both lists in a null pointer; they live until the call replaces us.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}
