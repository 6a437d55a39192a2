//! Descriptors, opened in ways that each system spells differently: to hold an inode, to pass through a directory, without
//! following a link, closed on exec from the beginning.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "macos.rs"]
mod system;

use std::{
    io,
    os::fd::{BorrowedFd, RawFd},
};

use rustix::io::FdFlags;
#[cfg(any(test, not(target_os = "linux")))]
pub(crate) use system::stream_pair;
pub(crate) use system::{
    HELD, NO_SIGNAL, PASSED, close_process_to_others, device_of, mode_of, nameless_file, open_beneath,
    open_terminal, open_without_links, path_of, peak_memory_kib, pipe, same_path, set_mode,
    times_tell_changes, widen_pipe,
};

/// Marks every descriptor but the standard streams and these to be closed on exec.
pub(crate) fn close_on_exec_all_but(kept: &[RawFd]) -> io::Result<()> {
    for fd in open_descriptors(kept)? {
        // SAFETY: the descriptor was listed as open just now, and this process has one thread.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        // The one that listed them is closed by now.
        rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC).ok();
    }
    Ok(())
}

/// Closes every descriptor but the standard streams and these. For a process that has just begun and owns nothing else.
#[cfg(not(target_os = "linux"))]
pub(crate) fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    for fd in open_descriptors(kept)? {
        // SAFETY: nothing in this process owns it.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

fn open_descriptors(kept: &[RawFd]) -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        found.extend(number.filter(|fd: &RawFd| *fd > 2 && !kept.contains(fd)));
    }
    Ok(found)
}
