//! The last steps of a new process before it becomes the shell: descriptors, limits, the wall, `execve`.
//!
//! Runs in a fork of a single-threaded process, so ordinary code is allowed. Every failure ends the process: a shell
//! that is not confined as promised is never started.

use std::{
    convert::Infallible,
    io::{self, Write},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    ptr,
};

use ::landlock::RulesetCreated;
use rustix::fs::{Mode, OFlags};

use super::{
    cell::{Cell, SCRIPT_FD},
    wire,
};
use crate::sandbox::{
    Tier,
    linux::{privileges, seccomp},
};

/// Where the shell's streams go.
pub(super) struct Streams {
    pub(super) script: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// The output is a terminal that shall be the controlling one.
    pub(super) terminal: bool,
}

/// What a shell's exit code says when the process never became one.
const CANNOT_START: i32 = 126;

/// Becomes the shell.
///
/// `owner` is told, in the core tier, the descriptor on which the kernel asks it.
pub(super) fn become_shell(
    cell: &Cell,
    ruleset: Option<RulesetCreated>,
    streams: Streams,
    owner: Option<OwnedFd>,
) -> ! {
    let Err(error) = confine_and_exec(cell, ruleset, streams, owner);
    // Standard error is the operation's output by now, or at worst the jail's own.
    writeln!(io::stderr(), "ahma_mcp: the shell could not be started: {error}").ok();
    exit_now(CANNOT_START)
}

/// Ends this process without running the destructors it shares with its parent.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(code) }
}

fn confine_and_exec(
    cell: &Cell,
    ruleset: Option<RulesetCreated>,
    streams: Streams,
    owner: Option<OwnedFd>,
) -> io::Result<Infallible> {
    rustix::process::setsid()?;
    reset_signals();
    let Streams {
        script,
        stdout,
        stderr,
        terminal,
    } = streams;
    rustix::stdio::dup2_stdin(rustix::fs::open(
        "/dev/null",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)?;
    rustix::stdio::dup2_stdout(&stdout)?;
    rustix::stdio::dup2_stderr(&stderr)?;
    if terminal {
        rustix::process::ioctl_tiocsctty(&stdout)?;
    }
    place_script(script.as_fd().as_raw_fd())?;
    std::env::set_current_dir(&cell.scope)?;
    privileges::lower_limits(cell.limits)?;

    rustix::thread::set_no_new_privs(true)?;
    if let Some(ruleset) = ruleset {
        // Restricts this thread, which is the only one.
        ruleset.restrict_self().map_err(io::Error::other)?;
    }
    if cell.tier != Tier::Off {
        privileges::empty_bounding_set()?;
        privileges::drop_capabilities()?;
    }
    for filter in &cell.filters {
        seccompiler::apply_filter(filter).map_err(io::Error::other)?;
    }
    if let Some(owner) = owner {
        let listener = seccomp::install_listener(&cell.asked)?;
        wire::send(&owner, &(), &[listener.as_fd()])?;
    }
    close_everything_else()?;
    exec(cell)
}

/// Rust ignores SIGPIPE and the jail blocks signals; a shell expects neither.
fn reset_signals() {
    for signal in 1..=31 {
        // SAFETY: installs the default action; fails harmlessly for KILL and STOP.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an empty set is a valid one, and it outlives the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

fn place_script(script: i32) -> io::Result<()> {
    // SAFETY: both are numbers; the old owner of the target number is closed, which is meant.
    let result = unsafe {
        if script == SCRIPT_FD {
            // dup2 onto itself would leave the close-on-exec flag set.
            libc::fcntl(script, libc::F_SETFD, 0)
        } else {
            libc::dup2(script, SCRIPT_FD)
        }
    };
    if result >= 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
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

fn exec(cell: &Cell) -> io::Result<Infallible> {
    let pointers = |words: &[std::ffi::CString]| -> Vec<*const libc::c_char> {
        words
            .iter()
            .map(|word| word.as_ptr())
            .chain([ptr::null()])
            .collect()
    };
    let (arguments, environment) = (pointers(&cell.arguments), pointers(&cell.environment));
    // SAFETY: all strings end in NUL and both lists in a null pointer; they live until the call replaces us.
    unsafe { libc::execve(cell.shell.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    Err(io::Error::last_os_error())
}
