//! The last steps of a new process before it becomes the command: descriptors, limits, confinement, `execve`.
//!
//! Runs in a fork of a single-threaded process, so ordinary code is allowed. Every failure ends the process: a command
//! that is not confined as promised is never started.

use std::{
    convert::Infallible,
    ffi::{CStr, CString},
    io::{self, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use rustix::{
    fs::{Mode, OFlags},
    io::FdFlags,
};

use super::{
    prepared::PreparedSandbox, program::NotStarted, streams::Streams, wall::Confinement, wire::ProcessKind,
};

/// Begins the messages of a process that could not become its command.
pub(super) const MESSAGE_PREFIX: &str = "ahma_mcp: ";

/// Exit code of a process that never became a command.
pub(super) const CANNOT_START: i32 = 126;

/// Becomes a shell that waits for its script, or waits for a request and becomes the program it names.
pub(super) fn become_command(
    sandbox: &PreparedSandbox,
    confinement: Confinement,
    streams: Streams,
    kind: ProcessKind,
) {
    let Err(NotStarted { code, reason }) = start(sandbox, confinement, streams, kind);
    // Standard error is the operation's output by now, or at worst the jail's own.
    writeln!(io::stderr(), "{MESSAGE_PREFIX}{reason}").ok();
    exit_now(code)
}

fn start(
    sandbox: &PreparedSandbox,
    confinement: Confinement,
    streams: Streams,
    kind: ProcessKind,
) -> Result<Infallible, NotStarted> {
    rustix::process::setsid().map_err(|error| not_started(error.into()))?;
    confinement.enter(sandbox, streams, kind)
}

pub(super) fn not_started(error: io::Error) -> NotStarted {
    NotStarted {
        code: CANNOT_START,
        reason: format!("the command could not be started: {error}"),
    }
}

/// Makes the streams those of this process, and returns the pipe from which it reads what to run.
pub(super) fn take_streams(streams: Streams) -> io::Result<OwnedFd> {
    let Streams {
        script,
        stdout,
        stderr,
        is_terminal,
        ..
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
    Ok(script)
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

/// The jail blocks signals; a command expects to get them.
pub(super) fn unblock_signals() {
    // SAFETY: an empty set is a valid one, and it outlives the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Moves a descriptor to the number at which the command expects it.
pub(super) fn place(fd: OwnedFd, number: RawFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() == number {
        // dup2 onto itself would leave the close-on-exec flag set.
        rustix::io::fcntl_setfd(&fd, FdFlags::empty())?;
        return Ok(fd);
    }
    // SAFETY: both are numbers; whatever has the target's is a leftover of the jail and is closed, which is meant.
    if unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and not owned elsewhere.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
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
