//! The descriptors that a process has from its parent.

use std::{
    io,
    os::fd::{BorrowedFd, RawFd},
};

use rustix::io::FdFlags;

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

/// All but the standard streams and these.
pub(super) fn open_descriptors(kept: &[RawFd]) -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        found.extend(number.filter(|fd: &RawFd| *fd > 2 && !kept.contains(fd)));
    }
    Ok(found)
}
