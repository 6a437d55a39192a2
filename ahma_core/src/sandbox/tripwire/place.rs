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
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::sandbox::directory::{self, DIRECTORY, by_descriptor};

/// The numbers of tmpfs, ramfs, overlayfs and FUSE.
const FORGETFUL: [u32; 4] = [0x0102_1994, 0x8584_58f6, 0x794c_7630, 0x6573_5546];

/// Those whose directories get another time with every name that comes or goes, at once and for all who look: ext4, XFS,
/// btrfs, F2FS and tmpfs. Others may do so; a network's may hear of it late.
const TELLING: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// For a directory that is only passed through. It needs no right to list it, and wakes nobody who watches it.
const WAY: OFlags = DIRECTORY.union(OFlags::PATH);

/// One name in one directory.
#[derive(Debug)]
pub(super) struct Place {
    parent: Arc<OwnedFd>,
    name: OsString,
}

/// What `statat` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) inode: Inode,
    /// How many names it has.
    pub(super) names: u64,
    /// Seconds and nanoseconds. No command can set it.
    pub(super) changed: (i64, i64),
}

/// Which one of all files and directories. Numbers alone are not enough: every btrfs subvolume begins with the same, and
/// commands can make and move subvolumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inode {
    pub(super) device: u64,
    number: u64,
}

impl Inode {
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            number: stat.st_ino,
        }
    }
}

impl Place {
    /// The place of `relative` below `root`. Fails where a part of the way is missing or is a link.
    pub(super) fn below(root: &Arc<OwnedFd>, relative: &Path) -> io::Result<Self> {
        let is_plain = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let (Some(above), Some(name), true) = (relative.parent(), relative.file_name(), is_plain) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = match above.parent() {
            None => Arc::clone(root),
            Some(_) => Arc::new(way(root, above)?),
        };
        Ok(Self {
            parent,
            name: name.to_owned(),
        })
    }

    /// The place of a name in a directory that is open.
    pub(super) fn within(directory: &Arc<OwnedFd>, name: OsString) -> Self {
        Self {
            parent: Arc::clone(directory),
            name,
        }
    }

    /// What is here; `None` only if it is certain that nothing is.
    pub(super) fn stamp(&self) -> io::Result<Option<Stamp>> {
        let found =
            self.insist(
                || match rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(None),
                    result => result.map(Some),
                },
            )?;
        Ok(found.map(|stat| stamp(&stat)))
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
        let found = stamp(&rustix::fs::fstat(&fd).ok()?);
        if found.kind != FileType::RegularFile || found.size > most {
            return None;
        }
        // With room for one more, by which the end is seen; a small buffer would be filled and enlarged many times.
        let mut content = Vec::with_capacity(usize::try_from(found.size).ok()? + 1);
        File::from(fd).take(most + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= most).then_some(content)
    }

    /// Whether the file system changes a file's time with every change of its content. Some forget those made through a
    /// mapping.
    pub(super) fn keeps_times(&self) -> bool {
        rustix::fs::fstatfs(&self.parent)
            .is_ok_and(|found| !FORGETFUL.map(|kind| kind as _).contains(&found.f_type))
    }

    /// The directory at this place.
    pub(super) fn directory(&self) -> io::Result<OwnedFd> {
        directory::open(&self.parent, &self.name)
    }

    /// The directory at this place, to pass through it.
    pub(super) fn way(&self) -> io::Result<OwnedFd> {
        step(&self.parent, &self.name)
    }

    /// The directory at this place and the names in it.
    pub(super) fn entries(&self) -> io::Result<(Arc<OwnedFd>, Vec<OsString>)> {
        let opened = self.directory()?;
        let names = directory::names(&opened)?;
        Ok((Arc::new(opened), names))
    }

    /// Moves what is here to another place.
    pub(super) fn rename_to(&self, directory: impl AsFd, name: &OsStr) -> io::Result<()> {
        let directory = directory.as_fd();
        let rename = || rustix::fs::renameat(&self.parent, &self.name, directory, name);
        match rename() {
            Err(Errno::ACCESS) => {
                // Moving a directory writes its `..`, the directory that had the name, and the one that gets it.
                directory::make_usable(&self.parent)?;
                directory::make_usable(directory)?;
                directory::make_usable(self.hold()?)?;
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
        let private = Mode::from_raw_mode(0o600);
        let fd = self.insist(|| rustix::fs::openat(&self.parent, &self.name, flags, private))?;
        let mut file = File::from(fd);
        file.write_all(content)?;
        // Last: writing takes some bits of a mode away.
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
    }

    pub(super) fn create_link(&self, target: &Path) -> io::Result<()> {
        self.insist(|| rustix::fs::symlinkat(target, &self.parent, &self.name))
    }

    pub(super) fn create_directory(&self) -> io::Result<()> {
        let private = Mode::from_raw_mode(0o700);
        self.insist(|| rustix::fs::mkdirat(&self.parent, &self.name, private))
    }

    /// Sets the mode of the directory at this place.
    pub(super) fn set_directory_mode(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(self.directory()?, Mode::from_raw_mode(mode))?)
    }

    /// A descriptor that keeps the inode from being used again.
    pub(super) fn hold(&self) -> io::Result<OwnedFd> {
        directory::hold(&self.parent, &self.name)
    }

    /// The same, if it is the inode that was seen.
    pub(super) fn hold_as(&self, inode: Inode) -> Option<Arc<OwnedFd>> {
        let held = self.hold().ok()?;
        (stamp_of(&held).ok()?.inode == inode).then(|| Arc::new(held))
    }

    fn insist<T>(&self, act: impl Fn() -> Result<T, Errno>) -> io::Result<T> {
        directory::insist(&self.parent, act)
    }
}

/// Whether an error on the way to a name means that nothing is there: a part is missing, or is no directory but a link.
pub(super) fn is_absence(error: &io::Error) -> bool {
    let absences = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    Errno::from_io_error(error).is_some_and(|errno| absences.contains(&errno))
}

/// Opens a directory that no command can reach.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// Opens a directory by its real path, on which no link may be by now.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    // Without `NOFOLLOW`, by which a link at the end would look like a file instead of an error.
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    Ok(rustix::fs::openat2(
        rustix::fs::CWD,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

/// Opens a directory some way below another, to pass through it.
fn way(root: &Arc<OwnedFd>, relative: &Path) -> io::Result<OwnedFd> {
    // In one step; without `NOFOLLOW`, or a link at the end would not be an error.
    let flags = WAY.difference(OFlags::NOFOLLOW);
    match rustix::fs::openat2(root, relative, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::ACCESS) => {
            // Name by name, so that each is made usable.
            let mut reached = root.try_clone()?;
            for name in relative {
                reached = step(&reached, name)?;
            }
            Ok(reached)
        }
        result => Ok(result?),
    }
}

fn step(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let parent = parent.as_fd();
    directory::insist(parent, || rustix::fs::openat(parent, name, WAY, Mode::empty()))
}

/// What an open directory is.
pub(super) fn stamp_of(directory: &OwnedFd) -> io::Result<Stamp> {
    Ok(stamp(&rustix::fs::fstat(directory)?))
}

/// The file system of an open directory, if its directories tell by their time when a name comes or goes.
pub(super) fn telling_device(directory: &OwnedFd) -> Option<u64> {
    let found = rustix::fs::fstatfs(directory).ok()?;
    let is_telling = TELLING.map(|kind| kind as _).contains(&found.f_type);
    let device = stamp_of(directory).ok()?.inode.device;
    is_telling.then_some(device)
}

/// Where a held inode is now.
pub(super) fn whereabouts(held: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(by_descriptor(held.as_fd()))
}

fn stamp(stat: &Stat) -> Stamp {
    Stamp {
        kind: FileType::from_raw_mode(stat.st_mode),
        mode: stat.st_mode & 0o7777,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        inode: Inode::of(stat),
        names: stat.st_nlink as _,
        changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
    }
}
