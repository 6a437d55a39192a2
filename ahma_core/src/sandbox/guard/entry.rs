//! One name in one directory, and everything the guard does with it.
//!
//! The guard works outside the sandbox, with the user's rights, on names that commands control, maybe while other
//! commands run. A path would be resolved anew at each step and could lead anywhere by then. So every step goes through
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
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use crate::sandbox::{
    directory::{self, DIRECTORY},
    held,
};

/// Age at which equal times mean equal content: no file system counts time in coarser steps.
const SETTLED_SECONDS: i64 = 2;

/// For a directory that is only passed through. It needs no right to list it, and wakes no watcher.
const PATH_ONLY: OFlags = DIRECTORY.union(held::PASSED);

/// One name in one directory.
#[derive(Debug)]
pub(super) struct Entry {
    parent: Arc<OwnedFd>,
    name: OsString,
}

/// Identity of a file or directory. The number alone is not enough: every btrfs subvolume begins with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) device: u64,
    number: u64,
}

/// The facts `stat` reports that change with every change of a file or directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) id: FileId,
    size: u64,
    /// Seconds and nanoseconds of the last change and of the last change of content. No command can set the former.
    times: [(i64, i64); 2],
    /// Old enough when it was taken: a later change cannot leave an equal one.
    settled: bool,
}

impl Stamp {
    fn new(stat: &Stat) -> Self {
        #[allow(clippy::useless_conversion, reason = "a type of its own on each system")]
        let nanoseconds = |value| i64::try_from(value).unwrap_or(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(0);
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: held::mode_of(stat) & 0o7777,
            id: FileId {
                device: held::device_of(stat),
                number: stat.st_ino,
            },
            size: u64::try_from(stat.st_size).unwrap_or(0),
            times: [
                (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
                (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            ],
            settled: stat.st_ctime + SETTLED_SECONDS < now,
        }
    }

    pub(super) fn of(opened: &OwnedFd) -> io::Result<Self> {
        Ok(Self::new(&rustix::fs::fstat(opened)?))
    }

    /// No difference between two stamps. Proves nothing if both were taken within one tick of the clock.
    pub(super) fn equals(&self, other: &Self) -> bool {
        (self.kind, self.mode, self.id, self.size, self.times)
            == (other.kind, other.mode, other.id, other.size, other.times)
    }

    /// Nothing has changed between this stamp and a later one.
    pub(super) fn is_unchanged_at(&self, later: &Self) -> bool {
        self.settled && self.equals(later)
    }
}

impl Entry {
    /// The entry at `relative` below `root`. Fails where a part of the path is missing or is a link.
    pub(super) fn below(root: &Arc<OwnedFd>, relative: &Path) -> io::Result<Self> {
        let is_plain = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let (Some(above), Some(name), true) = (relative.parent(), relative.file_name(), is_plain) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // One component at a time, so that each directory is made usable if need be.
        let mut parent = Arc::clone(root);
        for part in above {
            parent = Arc::new(Self::within(&parent, part).open_path()?);
        }
        Ok(Self::within(&parent, name))
    }

    pub(super) fn within(directory: &Arc<OwnedFd>, name: &OsStr) -> Self {
        Self {
            parent: Arc::clone(directory),
            name: name.to_owned(),
        }
    }

    /// `None` only if it is certain that nothing is there.
    pub(super) fn stamp(&self) -> io::Result<Option<Stamp>> {
        let found =
            self.insist(
                || match rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(None),
                    result => result.map(Some),
                },
            )?;
        Ok(found.map(|stat| Stamp::new(&stat)))
    }

    pub(super) fn link_target(&self) -> PathBuf {
        rustix::fs::readlinkat(&self.parent, &self.name, Vec::new())
            .map(|target| OsStr::from_bytes(target.as_bytes()).into())
            .unwrap_or_default()
    }

    /// The content of a regular file that is not longer than `limit`.
    pub(super) fn content(&self, limit: u64) -> Option<Vec<u8>> {
        // A pipe that was put here must not make us wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty()).ok()?;
        let found = Stamp::of(&fd).ok()?;
        if found.kind != FileType::RegularFile || found.size > limit {
            return None;
        }
        // With room for one more byte, by which the end is seen.
        let mut content = Vec::with_capacity(usize::try_from(found.size).ok()? + 1);
        File::from(fd).take(limit + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= limit).then_some(content)
    }

    /// The directory here, to pass through it.
    pub(super) fn open_path(&self) -> io::Result<OwnedFd> {
        self.insist(|| rustix::fs::openat(&self.parent, &self.name, PATH_ONLY, Mode::empty()))
    }

    /// The directory here and the names in it.
    pub(super) fn list(&self) -> io::Result<(Arc<OwnedFd>, Vec<OsString>)> {
        let opened = directory::open(&self.parent, &self.name)?;
        let names = directory::names(&opened)?;
        Ok((Arc::new(opened), names))
    }

    /// A descriptor that keeps the inode from being used again, if it is the one that was seen.
    pub(super) fn hold(&self, id: FileId) -> Option<Arc<OwnedFd>> {
        let held = directory::hold(&self.parent, &self.name).ok()?;
        (Stamp::of(&held).ok()?.id == id).then(|| Arc::new(held))
    }

    pub(super) fn rename_to(&self, directory: impl AsFd, name: &OsStr) -> io::Result<()> {
        let directory = directory.as_fd();
        let rename = || rustix::fs::renameat(&self.parent, &self.name, directory, name);
        match rename() {
            Err(Errno::ACCESS) => {
                // Moving a directory writes its `..`, the directory that had the name, and the one that gets it.
                directory::make_usable(&self.parent)?;
                directory::make_usable(directory)?;
                directory::make_usable(directory::hold(&self.parent, &self.name)?)?;
                Ok(rename()?)
            }
            result => Ok(result?),
        }
    }

    pub(super) fn rename_onto(&self, other: &Self) -> io::Result<()> {
        self.rename_to(&other.parent, &other.name)
    }

    /// Creates a file where nothing is.
    pub(super) fn create_file(&self, content: &[u8], mode: u32) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let private = Mode::from_raw_mode(0o600);
        let fd = self.insist(|| rustix::fs::openat(&self.parent, &self.name, flags, private))?;
        let mut file = File::from(fd);
        file.write_all(content)?;
        // Last: writing takes some bits of a mode away.
        held::set_mode(&file, mode)
    }

    pub(super) fn create_link(&self, target: &Path) -> io::Result<()> {
        self.insist(|| rustix::fs::symlinkat(target, &self.parent, &self.name))
    }

    pub(super) fn create_directory(&self) -> io::Result<Arc<OwnedFd>> {
        let private = Mode::from_raw_mode(0o700);
        self.insist(|| rustix::fs::mkdirat(&self.parent, &self.name, private))?;
        Ok(Arc::new(self.open_path()?))
    }

    pub(super) fn set_directory_mode(&self, mode: u32) -> io::Result<()> {
        let opened = directory::open(&self.parent, &self.name)?;
        held::set_mode(&opened, mode)
    }

    fn insist<T>(&self, act: impl Fn() -> Result<T, Errno>) -> io::Result<T> {
        directory::insist(&self.parent, act)
    }
}

/// Opens a directory by its real path, on which no link may be by now.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    // Without `NOFOLLOW`, by which a link at the end would look like a file instead of an error.
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    held::open_without_links(path, flags)
}

/// The device of an open directory, if files there get a new time with every change of their content.
pub(super) fn timed_device(directory: &OwnedFd) -> Option<u64> {
    let stamp = Stamp::of(directory).ok()?;
    held::times_tell_changes(directory).then_some(stamp.id.device)
}
