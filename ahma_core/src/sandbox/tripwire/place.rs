//! A name in a directory that is held open, and what can be done to it without following a link.
//!
//! The tripwire works outside the sandbox, with the user's rights, on names that commands control, maybe while other
//! commands run. A path would be looked up anew at each step and could lead anywhere by then. So every step goes through
//! descriptors: the scope's, and from there name by name, never through a symbolic link.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::PermissionsExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One name in one directory.
#[derive(Debug)]
pub(super) struct Place {
    parent: OwnedFd,
    name: OsString,
}

/// What `statat` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) inode: u64,
    /// Seconds and nanoseconds. No command can set it.
    pub(super) changed: (i64, i64),
}

impl Place {
    /// The place of `relative` below `root`. Fails where a part of the way is missing or is a link.
    pub(super) fn below(root: &OwnedFd, relative: &Path) -> io::Result<Self> {
        let mut parent = root.try_clone()?;
        let mut components = relative.components().peekable();
        while let Some(component) = components.next() {
            let Component::Normal(name) = component else {
                break;
            };
            if components.peek().is_none() {
                return Ok(Self {
                    parent,
                    name: name.to_owned(),
                });
            }
            parent = open_directory(&parent, name)?;
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    pub(super) fn stamp(&self) -> Option<Stamp> {
        let stat = rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(stamp(&stat))
    }

    pub(super) fn link_target(&self) -> PathBuf {
        rustix::fs::readlinkat(&self.parent, &self.name, Vec::new())
            .map(|target| OsStr::from_bytes(target.as_bytes()).into())
            .unwrap_or_default()
    }

    /// The content of a plain file that is not longer than `most`.
    pub(super) fn content(&self, most: u64) -> Option<Vec<u8>> {
        // A pipe that was put here must not make us wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty()).ok()?;
        if stamp(&rustix::fs::fstat(&fd).ok()?).kind != FileType::RegularFile {
            return None;
        }
        let mut content = Vec::new();
        File::from(fd).take(most + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= most).then_some(content)
    }

    /// The directory at this place.
    pub(super) fn directory(&self) -> io::Result<OwnedFd> {
        open_directory(&self.parent, &self.name)
    }

    /// The names in the directory at this place.
    pub(super) fn names(&self) -> Vec<OsString> {
        let Ok(directory) = self.directory().and_then(|fd| Ok(Dir::read_from(fd)?)) else {
            return Vec::new();
        };
        directory
            .filter_map(|entry| Some(OsStr::from_bytes(entry.ok()?.file_name().to_bytes()).to_owned()))
            .filter(|name| name != "." && name != "..")
            .collect()
    }

    /// Moves what is here to another place.
    pub(super) fn rename_to(&self, directory: impl AsFd, name: &OsStr) -> io::Result<()> {
        let rename = || rustix::fs::renameat(&self.parent, &self.name, &directory, name);
        match rename() {
            Err(Errno::ACCESS) => {
                // Moving a directory writes its `..`, and taking a name away writes the directory that had it.
                make_usable(self.parent.as_fd())?;
                make_usable(self.hold()?.as_fd())?;
                Ok(rename()?)
            }
            result => Ok(result?),
        }
    }

    pub(super) fn rename_onto(&self, other: &Self) -> io::Result<()> {
        self.rename_to(&other.parent, &other.name)
    }

    /// Makes a file where nothing is.
    pub(super) fn create_file(&self, content: &[u8], mode: u32) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.parent, &self.name, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode))?;
        File::from(fd).write_all(content)
    }

    pub(super) fn create_link(&self, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.parent, &self.name)?)
    }

    pub(super) fn create_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(
            &self.parent,
            &self.name,
            Mode::from_raw_mode(0o700),
        )?)
    }

    /// Sets the mode of the directory at this place.
    pub(super) fn set_directory_mode(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(self.directory()?, Mode::from_raw_mode(mode))?)
    }

    /// A descriptor that keeps the inode from being used again.
    pub(super) fn hold(&self) -> io::Result<OwnedFd> {
        hold(&self.parent, &self.name)
    }
}

pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// Where a held inode is now.
pub(super) fn whereabouts(held: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(by_descriptor(held.as_fd()))
}

fn open_directory(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(parent, name, DIRECTORY, Mode::empty());
    match open() {
        Err(Errno::ACCESS) => {
            make_usable(hold(parent, name)?.as_fd())?;
            Ok(open()?)
        }
        result => Ok(result?),
    }
}

fn hold(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// A command may have taken its own rights away from a directory, and so ours.
fn make_usable(directory: std::os::fd::BorrowedFd<'_>) -> io::Result<()> {
    let found = stamp(&rustix::fs::fstat(directory)?);
    if found.kind != FileType::Directory || found.mode & 0o700 == 0o700 {
        return Ok(());
    }
    let permissions = std::fs::Permissions::from_mode(found.mode | 0o700);
    // The only way to change the mode of an inode that is held but not opened.
    std::fs::set_permissions(by_descriptor(directory), permissions)
}

fn by_descriptor(fd: std::os::fd::BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

fn stamp(stat: &Stat) -> Stamp {
    Stamp {
        kind: FileType::from_raw_mode(stat.st_mode),
        mode: stat.st_mode & 0o7777,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        inode: stat.st_ino,
        changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
    }
}
