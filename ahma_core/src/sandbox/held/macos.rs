//! macOS: what Linux does at once takes two calls here, and no descriptor holds an inode that may not be opened.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, Stat},
    io::{Errno, FdFlags},
    net::{AddressFamily, SendFlags, SocketFlags, SocketType},
    pty::OpenptFlags,
};

/// `O_SYMLINK`: a link is opened itself.
pub(crate) const HELD: OFlags = OFlags::from_bits_retain(libc::O_SYMLINK as u32 | libc::O_EVTONLY as u32);

/// `O_SEARCH`: a directory that is only passed through.
pub(crate) const PASSED: OFlags = OFlags::from_bits_retain(0x4000_0000 | 0x0010_0000);

/// Sockets are told not to signal when they are made.
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// `O_NOFOLLOW_ANY`: no part of the path is a link.
const NO_LINKS: OFlags = OFlags::from_bits_retain(0x2000_0000);

/// Opens a real path, on which no link may be by now. `ELOOP` if there is one.
pub(crate) fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, flags | NO_LINKS, Mode::empty())?)
}

/// Opens a path below a directory, following nothing out of it. What changes meanwhile is refused.
pub(crate) fn open_beneath(directory: impl AsFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let root = path_of(directory).ok_or(Errno::NOENT)?;
    let real = root.join(below).canonicalize().map_err(errno)?;
    if !real.starts_with(&root) {
        return Err(Errno::XDEV);
    }
    open_without_links(&real, flags).map_err(errno)
}

/// The system lets only a debugger look into a process, and the sandbox keeps commands from being one.
pub(crate) fn close_process_to_others() -> io::Result<()> {
    Ok(())
}

/// It is not closed to them here.
pub(crate) fn open_process_to_others() {}

/// Closes every descriptor but the standard streams and these, in a process that has just begun and owns nothing else:
/// what cannot be made close-on-exec at once may have come along from another thread of its parent.
pub(crate) fn close_inherited(kept: &[RawFd]) -> io::Result<()> {
    for fd in super::inherited::open_descriptors(kept)? {
        // SAFETY: nothing in this process owns it.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// The system compresses and takes what is not used.
pub(crate) fn release_memory() {}

/// Makes the kernel hold more of what is written to a pipe, and returns whether it does.
pub(crate) fn widen_pipe(_pipe: impl AsFd, _bytes: usize) -> bool {
    false
}

pub(crate) fn set_mode(held: impl AsFd, mode: u32) -> io::Result<()> {
    let mode = libc::mode_t::try_from(mode).map_err(io::Error::other)?;
    Ok(rustix::fs::fchmod(held, Mode::from_raw_mode(mode))?)
}

/// A path that leads to what is held, unless it is moved.
pub(crate) fn same_path(held: impl AsFd) -> PathBuf {
    path_of(held).unwrap_or_default()
}

/// The present path of what is held.
pub(crate) fn path_of(held: impl AsFd) -> Option<PathBuf> {
    let path = rustix::fs::getpath(held).ok()?;
    Some(std::ffi::OsStr::from_bytes(path.as_bytes()).into())
}

pub(crate) fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode.into()
}

pub(crate) fn device_of(stat: &Stat) -> u64 {
    u64::from(stat.st_dev.cast_unsigned())
}

/// Files in this directory get a new time with every change of their content.
pub(crate) fn times_tell_changes(_directory: impl AsFd) -> bool {
    // Not known of any file system there, so contents are compared.
    false
}

/// A pipe, closed on exec.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe()?;
    close_on_exec(&read)?;
    close_on_exec(&write)?;
    Ok((read, write))
}

/// A file that no path leads to. It has one in `directory` for a moment.
pub(crate) fn nameless_file(directory: &Path) -> io::Result<OwnedFd> {
    let path = directory.join(format!("nameless-{:016x}", rand::random::<u64>()));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// A pair of connected stream sockets, closed on exec.
pub(crate) fn stream_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )?;
    for socket in [&ours, &theirs] {
        close_on_exec(socket)?;
        rustix::net::sockopt::set_socket_nosigpipe(socket, true)?;
    }
    Ok((ours, theirs))
}

/// A pseudo-terminal: its master and its other side.
pub(crate) fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    close_on_exec(&master)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name, flags, Mode::empty())?;
    Ok((master, terminal))
}

fn close_on_exec(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)?)
}

/// The most memory that a process had, which the kernel tells in bytes here.
pub(crate) fn peak_memory_kib(usage: &libc::rusage) -> u64 {
    u64::try_from(usage.ru_maxrss / 1024).unwrap_or(0)
}
