//! Waiting for children, and finding all that is below this process.

use std::{
    fs, io,
    os::fd::{FromRawFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::Pid,
};

/// Gives every signal its default action, here and in all that is started from here.
///
/// Rust ignores SIGPIPE, and whoever started the server may ignore others, which survives `exec`. Of an ignored SIGCHLD
/// the kernel would throw away both the signal and what `wait` would tell.
pub(super) fn reset_signals() {
    for signal in 1..=31 {
        // SAFETY: installs the default action; fails harmlessly for KILL and STOP.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Blocks every signal and returns a descriptor that tells when a child has ended.
pub(super) fn block_signals() -> io::Result<OwnedFd> {
    // SAFETY: the sets are filled before they are used, and live until the calls return.
    let fd = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        let mut child: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut child);
        libc::sigaddset(&raw mut child, libc::SIGCHLD);
        libc::signalfd(-1, &raw const child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sleeps until a child ends, one of the others can be read, or there is no more patience.
pub(super) fn wait<'fd>(
    child_ended: &'fd OwnedFd,
    others: impl IntoIterator<Item = &'fd OwnedFd>,
    patience: Option<Duration>,
) {
    let mut fds = vec![PollFd::new(child_ended, PollFlags::IN)];
    fds.extend(others.into_iter().map(|other| PollFd::new(other, PollFlags::IN)));
    let patience = patience.map(|duration| Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    });
    rustix::event::poll(&mut fds, patience.as_ref()).ok();
    // Empties the queue of signals.
    let mut signals = [0_u8; 1024];
    rustix::io::read(child_ended, &mut signals).ok();
}

/// Whether a read would not wait.
pub(super) fn is_ready(fd: &OwnedFd) -> bool {
    !now(fd).is_empty()
}

/// What is the matter with a descriptor now.
pub(super) fn now(fd: &OwnedFd) -> PollFlags {
    const AT_ONCE: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    match rustix::event::poll(&mut fds, Some(&AT_ONCE)) {
        Ok(_) => fds[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// Every process below this one. The list is old as soon as it is made; callers repeat until nothing is left.
pub(super) fn descendants() -> Vec<Pid> {
    let mut found = children_of(rustix::process::getpid());
    let mut next = 0;
    while next < found.len() {
        found.extend(children_of(found[next]));
        next += 1;
    }
    found
}

/// The children of a process, of all its threads.
pub(super) fn children_of(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|children| {
            children
                .split_ascii_whitespace()
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// How many processes and threads there are below this one.
pub(super) fn population() -> usize {
    let threads = |pid: &Pid| {
        let listed = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
        // One that ended meanwhile waits to be collected.
        listed.map_or(1, Iterator::count)
    };
    descendants().iter().map(threads).sum()
}
