//! Linux has a flag or a call for each of these.

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd, RawFd},
        unix::fs::PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
    pipe::PipeFlags,
    pty::OpenptFlags,
};

/// Holds an inode, whatever it is and whatever the rights to it.
pub(crate) const HELD: OFlags = OFlags::PATH;

/// For a directory that is only passed through. It needs no right to list it, and wakes no watcher.
pub(crate) const PASSED: OFlags = OFlags::PATH;

/// A send to a peer that is gone is an error and no signal.
pub(crate) const NO_SIGNAL: rustix::net::SendFlags = rustix::net::SendFlags::NOSIGNAL;

/// Opens a real path, on which no link may be by now. `ELOOP` if there is one.
pub(crate) fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat2(
        CWD,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?)
}

/// Opens a path below a directory, following nothing out of it.
pub(crate) fn open_beneath(directory: impl AsFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(directory, below, flags, Mode::empty(), beneath)
}

/// Keeps others of the same user from looking into this process.
pub(crate) fn close_process_to_others() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(
        rustix::process::DumpableBehavior::NotDumpable,
    )?)
}

/// As after an `exec`: in the core tier the broker looks at the files of a process whose call it makes.
pub(crate) fn open_process_to_others() {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable).ok();
}

/// A new process has no descriptors but those it was given: all others were made close-on-exec when they were opened.
pub(crate) fn close_inherited(_kept: &[RawFd]) -> io::Result<()> {
    Ok(())
}

unsafe extern "C" {
    /// The first byte of the program in memory, as linkers name it.
    static __executable_start: u8;
    /// The end of its code.
    static etext: u8;
}

/// Gives back memory that is not needed while nothing is done: what the allocator has left, and pages of the program, most
/// of which only its start needed. Those that are needed again come from the system's cache.
pub(crate) fn release_memory() {
    // SAFETY: gives back what nothing uses.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let page = rustix::param::page_size();
    let first = (&raw const __executable_start).addr().next_multiple_of(page);
    let end = (&raw const etext).addr() / page * page;
    // SAFETY: from the start of the program to the end of its code there is nothing that was written, by relocations or
    // otherwise, so the file has all that is dropped.
    unsafe {
        libc::madvise(
            std::ptr::with_exposed_provenance_mut(first),
            end.saturating_sub(first),
            libc::MADV_DONTNEED,
        )
    };
}

/// Makes the kernel hold more of what is written to a pipe, and returns whether it does.
pub(crate) fn widen_pipe(pipe: impl AsFd, bytes: usize) -> bool {
    rustix::pipe::fcntl_setpipe_size(pipe, bytes).is_ok()
}

/// Changes the mode of an inode that is held. There is no other way for one that is not opened.
pub(crate) fn set_mode(held: impl AsFd, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(same_path(held), std::fs::Permissions::from_mode(mode))
}

/// A path that leads to the inode that is held.
pub(crate) fn same_path(held: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_fd().as_raw_fd()))
}

/// The present path of what is held.
pub(crate) fn path_of(held: impl AsFd) -> Option<PathBuf> {
    std::fs::read_link(same_path(held)).ok()
}

pub(crate) fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode
}

pub(crate) fn device_of(stat: &Stat) -> u64 {
    stat.st_dev
}

/// File systems on which a write through a mapping leaves a file's times as they are: tmpfs, ramfs, overlayfs, FUSE.
const WITHOUT_MAPPED_TIMES: [u32; 4] = [0x0102_1994, 0x8584_58f6, 0x794c_7630, 0x6573_5546];

/// Files in this directory get a new time with every change of their content.
pub(crate) fn times_tell_changes(directory: impl AsFd) -> bool {
    let kind = rustix::fs::fstatfs(directory).map(|found| found.f_type);
    kind.is_ok_and(|kind| !WITHOUT_MAPPED_TIMES.map(|number| number as _).contains(&kind))
}

/// A pipe, closed on exec.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// A file that no path leads to.
pub(crate) fn nameless_file(_directory: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC)?)
}

/// A pair of connected stream sockets, closed on exec.
#[cfg(test)]
pub(crate) fn stream_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// A pseudo-terminal: its master and its other side.
pub(crate) fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = rustix::fs::open("/dev/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&master)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    Ok((master, terminal))
}

/// The most memory that a process had, which the kernel tells in kibibytes already.
pub(crate) fn peak_memory_kib(usage: &libc::rusage) -> u64 {
    u64::try_from(usage.ru_maxrss).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::release_memory;

    /// Kibibytes of this program's code that are in memory for it.
    fn code_in_memory() -> u64 {
        let own = std::env::current_exe().unwrap();
        let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = mappings.lines();
        lines
            .find(|line| line.contains(" r-xp ") && line.ends_with(own.to_str().unwrap()))
            .expect("the code");
        let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn code_that_is_not_needed_now_takes_no_memory() {
        let before = code_in_memory();
        release_memory();
        let after = code_in_memory();
        assert!(after < before, "{before} KiB, then {after}");
    }
}
