//! Protected paths as they are at one moment: enough to recognise a change, and to undo it.
//!
//! Stamps come first. A name that was missing is not looked for in a directory whose stamp has not moved, what a
//! read-only mount covers is not looked into, and a file is read only if its own stamp has moved.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::fs::FileType;

use super::entry::{Entry, FileId, Stamp};

/// Bytes kept of one protected tree, files before directories. A change of the rest is noticed but cannot be undone.
pub(super) const MAX_KEPT_BYTES: u64 = 4 * 1024 * 1024;

/// Directories held open on the way down. What lies deeper in a protected tree is not looked at.
const MAX_DEPTH: usize = 64;

/// The protected names below one directory.
#[derive(Debug, Default)]
pub(super) struct Names {
    below: BTreeMap<OsString, Names>,
    /// Protected with everything in it; otherwise only the names below are.
    whole: bool,
}

impl Names {
    /// `protected` are absolute paths; those outside `root` are left out.
    pub(super) fn new(root: &Path, protected: &[PathBuf]) -> Self {
        let mut names = Self::default();
        for path in protected {
            let Ok(relative) = path.strip_prefix(root) else {
                continue;
            };
            if relative.as_os_str().is_empty()
                || !relative
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)))
            {
                continue;
            }
            let mut at = &mut names;
            for name in relative {
                at = at.below.entry(name.to_owned()).or_default();
            }
            // Git works in its directory, so only the names in there are protected.
            at.whole = relative != Path::new(".git");
        }
        names
    }

    pub(super) fn is_empty(&self) -> bool {
        self.below.is_empty()
    }

    /// A directory at this name is not protected itself.
    pub(super) fn is_container(&self) -> bool {
        !self.whole
    }

    /// The names below `name`; everything there if this is protected as a whole.
    pub(super) fn below(&self, name: &OsStr) -> &Self {
        self.below.get(name).filter(|_| !self.whole).unwrap_or(&WHOLE)
    }
}

static WHOLE: Names = Names {
    below: BTreeMap::new(),
    whole: true,
};

/// One file, directory or link as it was.
#[derive(Debug, Clone)]
pub(super) enum Node {
    File {
        stamp: Stamp,
        /// Not of long files, nor of any once enough is kept.
        content: Option<Arc<[u8]>>,
    },
    Directory {
        stamp: Stamp,
        entries: BTreeMap<OsString, Node>,
        /// Finds a container again wherever it was moved.
        held: Option<Arc<OwnedFd>>,
    },
    /// A read-only mount keeps commands from changing it, for as long as it is the same inode.
    Mounted {
        id: FileId,
        held: Arc<OwnedFd>,
    },
    Link {
        target: PathBuf,
    },
    /// A pipe, socket or device, or something new that nothing needs to be known of.
    Other {
        id: FileId,
    },
    Unreadable,
}

impl Node {
    /// The entries of a directory that was looked into.
    pub(super) fn entries(&self) -> Option<&BTreeMap<OsString, Self>> {
        match self {
            Self::Directory { entries, .. } => Some(entries),
            _ => None,
        }
    }

    /// Files in it that cannot be restored.
    pub(super) fn unkept_files(&self) -> usize {
        match self {
            Self::File { content: None, .. } => 1,
            Self::Directory { entries, .. } => entries.values().map(Self::unkept_files).sum(),
            _ => 0,
        }
    }
}

/// Purpose of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Everything that exists is about to be mounted read-only.
    FirstWithMounts,
    Baseline,
    /// New entries are not looked into.
    Check,
}

/// One look at everything protected.
#[derive(Debug)]
pub(super) struct Look {
    purpose: Purpose,
    /// The device on which the times of files can be trusted.
    timed_device: Option<u64>,
    /// Bytes of the current tree that may still be kept.
    left: u64,
    pub(super) counts: LookCounts,
}

/// Work that a look took.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct LookCounts {
    /// Names and directories looked at.
    pub(super) stamps: usize,
    /// Directories listed.
    pub(super) lists: usize,
    pub(super) bytes_read: usize,
}

impl Look {
    pub(super) fn new(purpose: Purpose, timed_device: Option<u64>) -> Self {
        Self {
            purpose,
            timed_device,
            left: 0,
            counts: LookCounts::default(),
        }
    }

    /// The container that is open as `directory`. `earlier` saves looking at what cannot have changed.
    pub(super) fn container(
        &mut self,
        directory: &Arc<OwnedFd>,
        names: &Names,
        earlier: Option<&Node>,
    ) -> Node {
        self.counts.stamps += 1;
        let Ok(stamp) = Stamp::of(directory) else {
            return Node::Unreadable;
        };
        let (before, unchanged) = entries_before(earlier, &stamp);
        let mut entries = BTreeMap::new();
        for (name, below) in &names.below {
            let node = match before.and_then(|before| before.get(name)) {
                None if unchanged => None,
                Some(mounted @ Node::Mounted { .. }) if unchanged => Some(mounted.clone()),
                Some(earlier @ Node::Directory { held: Some(held), .. }) if unchanged => {
                    Some(self.container(held, below, Some(earlier)))
                }
                earlier => {
                    self.left = MAX_KEPT_BYTES;
                    self.entry(&Entry::within(directory, name), below, earlier, 0)
                }
            };
            entries.extend(node.map(|node| (name.clone(), node)));
        }
        Node::Directory {
            stamp,
            entries,
            held: Some(Arc::clone(directory)),
        }
    }

    fn entry(&mut self, entry: &Entry, names: &Names, earlier: Option<&Node>, depth: usize) -> Option<Node> {
        match self.stamp(entry) {
            Ok(stamp) => Some(self.node(entry, stamp?, names, earlier, depth)),
            Err(_) => Some(Node::Unreadable),
        }
    }

    fn stamp(&mut self, entry: &Entry) -> io::Result<Option<Stamp>> {
        self.counts.stamps += 1;
        entry.stamp()
    }

    fn node(
        &mut self,
        entry: &Entry,
        stamp: Stamp,
        names: &Names,
        earlier: Option<&Node>,
        depth: usize,
    ) -> Node {
        let id = stamp.id;
        let is_new = self.purpose == Purpose::Check && earlier.is_none();
        match stamp.kind {
            FileType::Directory if names.is_container() => match entry.open_path() {
                Ok(opened) => self.container(&Arc::new(opened), names, earlier),
                Err(_) => Node::Unreadable,
            },
            FileType::Symlink => Node::Link {
                target: entry.link_target(),
            },
            FileType::RegularFile | FileType::Directory if !is_new => {
                match self.mounted(entry, id, earlier) {
                    Some(mounted) => mounted,
                    None if stamp.kind == FileType::Directory => self.tree(entry, stamp, earlier, depth),
                    None => self.file(entry, stamp, earlier),
                }
            }
            _ => Node::Other { id },
        }
    }

    fn mounted(&self, entry: &Entry, id: FileId, earlier: Option<&Node>) -> Option<Node> {
        match earlier {
            Some(mounted @ Node::Mounted { id: before, .. }) if *before == id => Some(mounted.clone()),
            None if self.purpose == Purpose::FirstWithMounts => {
                let held = entry.hold(id)?;
                Some(Node::Mounted { id, held })
            }
            _ => None,
        }
    }

    fn file(&mut self, entry: &Entry, stamp: Stamp, earlier: Option<&Node>) -> Node {
        let is_timed = self.timed_device == Some(stamp.id.device);
        let (before, kept) = match earlier {
            Some(Node::File { stamp, content }) => (Some(stamp), content.as_ref()),
            _ => (None, None),
        };
        let content = if is_timed && before.is_some_and(|before| before.is_unchanged_at(&stamp)) {
            kept.cloned()
        } else {
            // To be compared, no more is needed than there was.
            let limit = match kept {
                Some(kept) if self.purpose == Purpose::Check => kept.len() as u64,
                _ => self.left,
            };
            entry.content(limit).map(Arc::from)
        };
        let length = content.as_ref().map_or(0, |content| content.len());
        self.left = self.left.saturating_sub(length as u64);
        if content.as_ref().map(Arc::as_ptr) != kept.map(Arc::as_ptr) {
            self.counts.bytes_read += length;
        }
        Node::File { stamp, content }
    }

    fn tree(&mut self, entry: &Entry, stamp: Stamp, earlier: Option<&Node>, depth: usize) -> Node {
        let (before, unchanged) = entries_before(earlier, &stamp);
        let directory = |entries| Node::Directory {
            stamp,
            entries,
            held: None,
        };
        let mut entries = BTreeMap::new();
        let listed = match before.filter(|_| unchanged) {
            _ if depth == MAX_DEPTH => return directory(entries),
            Some(before) if before.is_empty() => return directory(entries),
            Some(before) => entry
                .open_path()
                .map(|opened| (Arc::new(opened), before.keys().cloned().collect())),
            None => {
                self.counts.lists += 1;
                entry.list()
            }
        };
        let Ok((opened, names)) = listed else {
            return Node::Unreadable;
        };
        // Files first: what lies highest is kept first.
        let mut directories = Vec::new();
        for name in names {
            let entry = Entry::within(&opened, &name);
            let earlier = before.and_then(|before| before.get(&name));
            let node = match self.stamp(&entry) {
                Ok(None) => continue,
                Ok(Some(stamp)) if stamp.kind == FileType::Directory => {
                    directories.push((entry, name, stamp, earlier));
                    continue;
                }
                Ok(Some(stamp)) => self.node(&entry, stamp, &WHOLE, earlier, depth + 1),
                Err(_) => Node::Unreadable,
            };
            entries.insert(name, node);
        }
        for (entry, name, stamp, earlier) in directories {
            let node = self.node(&entry, stamp, &WHOLE, earlier, depth + 1);
            entries.insert(name, node);
        }
        directory(entries)
    }
}

/// The entries of an earlier look at a directory, and whether its stamp says that they are the same now.
fn entries_before<'a>(
    earlier: Option<&'a Node>,
    now: &Stamp,
) -> (Option<&'a BTreeMap<OsString, Node>>, bool) {
    match earlier {
        Some(Node::Directory { stamp, entries, .. }) => (Some(entries), stamp.is_unchanged_at(now)),
        _ => (None, false),
    }
}
