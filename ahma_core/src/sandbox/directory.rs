//! Directories that commands control, handled from outside the sandbox: by descriptor, name by name, never through a
//! symbolic link, and although a command may have taken the rights to them away.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags},
    io::Errno,
};

use super::held;

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
    let flags = held::HELD | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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
    let found = rustix::fs::fstat(directory)?;
    let mode = held::mode_of(&found);
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory || mode & USABLE == USABLE {
        return Ok(());
    }
    held::set_mode(directory, mode & 0o7777 | USABLE)
}

/// Keeps an open directory usable, and gives it back as it was.
#[derive(Debug)]
pub(crate) struct KeptUsable<'a> {
    directory: &'a OwnedFd,
    /// `None` where nothing had to be done.
    mode: Option<u32>,
}

impl<'a> KeptUsable<'a> {
    pub(crate) fn new(directory: &'a OwnedFd) -> Self {
        let found = rustix::fs::fstat(directory).map_or(USABLE, |stat| held::mode_of(&stat) & 0o7777);
        let is_made = found & USABLE != USABLE && make_usable(directory).is_ok();
        Self {
            directory,
            mode: is_made.then_some(found),
        }
    }
}

impl Drop for KeptUsable<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.mode {
            held::set_mode(self.directory, mode).ok();
        }
    }
}
