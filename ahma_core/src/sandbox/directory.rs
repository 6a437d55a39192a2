//! Directories that commands control, handled from outside the sandbox: by descriptor, name by name, never through a
//! symbolic link, and although a command may have taken the rights to them away.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::PermissionsExt},
    },
    path::PathBuf,
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags},
    io::Errno,
};

pub(crate) const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The rights needed to list, fill and empty a directory.
const USABLE: u32 = 0o700;

/// Opens the directory `name` in `parent`, usable or made so.
pub(crate) fn open(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let parent = parent.as_fd();
    let open = || rustix::fs::openat(parent, name, DIRECTORY, Mode::empty());
    match open() {
        Err(Errno::ACCESS) => {
            make_usable(parent)?;
            make_usable(hold(parent, name)?)?;
            Ok(open()?)
        }
        result => Ok(result?),
    }
}

/// A descriptor that keeps the inode from being used again.
pub(crate) fn hold(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let parent = parent.as_fd();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    insist(parent, || rustix::fs::openat(parent, name, flags, Mode::empty()))
}

/// The names in a directory that is open to be read.
pub(crate) fn names(directory: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Does something with a name in `parent`, which is made usable if that is what it takes.
pub(crate) fn insist<T>(parent: impl AsFd, act: impl Fn() -> Result<T, Errno>) -> io::Result<T> {
    match act() {
        Err(Errno::ACCESS) => {
            make_usable(parent)?;
            Ok(act()?)
        }
        result => Ok(result?),
    }
}

/// A command may have taken its own rights away from a directory, and so ours. What is no directory stays as it is.
pub(crate) fn make_usable(directory: impl AsFd) -> io::Result<()> {
    let directory = directory.as_fd();
    let mode = rustix::fs::fstat(directory)?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::Directory || mode & USABLE == USABLE {
        return Ok(());
    }
    let permissions = std::fs::Permissions::from_mode(mode & 0o7777 | USABLE);
    // The only way to change the mode of an inode that is held but not opened.
    std::fs::set_permissions(by_descriptor(directory), permissions)
}

/// Keeps an open directory usable, and gives it back as it was.
#[derive(Debug)]
pub(crate) struct KeptUsable<'a> {
    directory: &'a OwnedFd,
    /// `None` where nothing had to be done.
    mode: Option<Mode>,
}

impl<'a> KeptUsable<'a> {
    pub(crate) fn new(directory: &'a OwnedFd) -> Self {
        let found = rustix::fs::fstat(directory).map_or(USABLE, |stat| stat.st_mode & 0o7777);
        let is_made = found & USABLE != USABLE && make_usable(directory).is_ok();
        Self {
            directory,
            mode: is_made.then(|| Mode::from_raw_mode(found)),
        }
    }
}

impl Drop for KeptUsable<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.mode {
            rustix::fs::fchmod(self.directory, mode).ok();
        }
    }
}

pub(crate) fn by_descriptor(fd: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}
