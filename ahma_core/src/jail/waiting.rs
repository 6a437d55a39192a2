//! Waiting without being interrupted: signals are blocked, and the end of a child is something that a descriptor tells.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::system::child_ended;

/// Gives every signal its default action, here and in everything started from here.
///
/// Rust ignores SIGPIPE, and the server's parent may ignore others, which survives `exec`. With SIGCHLD ignored the
/// kernel would discard both the signal and the exit status.
pub(super) fn reset_signals() {
    for signal in 1..=31 {
        // SAFETY: installs the default action; fails harmlessly for KILL and STOP.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Blocks every signal and returns a descriptor that becomes readable when a child has ended.
pub(super) fn block_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is filled before it is used, and lives until the calls return.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
    child_ended::open()
}

/// Sleeps until a child ends, the other can be read, or the timeout is over.
pub(super) fn wait(child_ended: &OwnedFd, other: Option<&OwnedFd>, timeout: Option<Duration>) {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let polled = |fd| PollFd::new(fd, PollFlags::IN);
    match other {
        Some(other) => rustix::event::poll(&mut [polled(child_ended), polled(other)], timeout.as_ref()),
        None => rustix::event::poll(&mut [polled(child_ended)], timeout.as_ref()),
    }
    .ok();
    child_ended::forget(child_ended);
}

/// Sleeps until one of them can be read.
pub(super) fn wait_for_any<'fd>(fds: impl IntoIterator<Item = &'fd OwnedFd>) {
    let mut fds: Vec<_> = fds.into_iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    rustix::event::poll(&mut fds, None).ok();
}

/// A read would not wait.
pub(super) fn is_ready(fd: &OwnedFd) -> bool {
    !poll_now(fd).is_empty()
}

/// The present state of a descriptor.
pub(super) fn poll_now(fd: &OwnedFd) -> PollFlags {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    match rustix::event::poll(&mut fds, Some(&Timespec::default())) {
        Ok(_) => fds[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}
