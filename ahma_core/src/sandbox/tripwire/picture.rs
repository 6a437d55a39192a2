//! What the watched names were when no command ran: enough to tell a change, and to undo it.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::FileType;

use super::place::{Inode, Place, Stamp, is_absence};

/// Of one protected tree so much is kept to be put back; what lies highest first. Of the rest a change is noticed, but
/// cannot be undone.
pub(super) const MOST_KEPT: u64 = 4 * 1024 * 1024;

/// How old a file must be for an equal time stamp to mean an equal content. File systems count time in ticks.
const SETTLED_SECONDS: i64 = 2;

/// How closely a name is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The way to a watched name: it must not become a link.
    Way,
    /// Which directory it is, but not what lies in it.
    Itself,
    /// Everything in it.
    Tree,
}

impl Depth {
    /// The depth that this is the number of.
    pub(super) fn by_number(number: u8) -> Option<Self> {
        [Self::Way, Self::Itself, Self::Tree]
            .into_iter()
            .find(|depth| *depth as u8 == number)
    }
}

/// The nodes by their path below the scope. Hashed, because a call looks up each of them four times.
pub(super) type Picture = HashMap<PathBuf, Node>;

/// One file, directory or link as it was.
#[derive(Debug, Clone)]
pub(super) enum Node {
    File {
        /// Not of long files, nor of any once enough is kept.
        content: Option<Arc<[u8]>>,
        stamp: Stamp,
        /// An equal stamp means an equal content.
        settled: bool,
    },
    Directory {
        mode: u32,
        inode: Inode,
        depth: Depth,
        /// What lies in it, if that is watched and could be listed.
        names: Option<Arc<BTreeSet<OsString>>>,
        /// Finds the directory again wherever it was moved, and keeps its number from being used again.
        held: Option<Arc<OwnedFd>>,
    },
    Link {
        target: PathBuf,
    },
    /// A pipe, socket or device.
    Other {
        inode: Inode,
    },
    /// Something that could not be looked at, or maybe nothing.
    Unknown,
}

/// Adds what is at `path` below `root` to the picture. Contents are taken from `earlier` where nothing can have changed.
pub(super) fn take(root: &Arc<OwnedFd>, path: &Path, depth: Depth, earlier: &Picture, picture: &mut Picture) {
    let mut taking = Taking {
        earlier,
        picture,
        waiting: VecDeque::new(),
        left: MOST_KEPT,
    };
    match Place::below(root, path) {
        Ok(place) => taking.add(&place, path.to_owned(), depth),
        Err(error) if is_absence(&error) => {}
        Err(_) => {
            taking.picture.insert(path.to_owned(), Node::Unknown);
        }
    }
    while let Some(path) = taking.waiting.pop_front() {
        let Ok((opened, listed)) = Place::below(root, &path).and_then(|place| place.entries()) else {
            continue;
        };
        for name in &listed {
            taking.add(
                &Place::within(&opened, name.clone()),
                path.join(name),
                Depth::Tree,
            );
        }
        if let Some(Node::Directory { names, .. }) = taking.picture.get_mut(&path) {
            *names = Some(Arc::new(listed.into_iter().collect()));
        }
    }
}

/// A picture of one tree being taken, what lies highest first.
struct Taking<'a> {
    earlier: &'a Picture,
    picture: &'a mut Picture,
    /// Directories to look into; by path, because a wide tree would need more descriptors than there are.
    waiting: VecDeque<PathBuf>,
    /// How many bytes are still kept.
    left: u64,
}

impl Taking<'_> {
    fn add(&mut self, place: &Place, path: PathBuf, depth: Depth) {
        let node = match look(place, depth, self.earlier.get(&path), self.left) {
            Ok(Some(node)) => node,
            Ok(None) => return,
            Err(_) => Node::Unknown,
        };
        match &node {
            Node::File { content, .. } => {
                let length = content.as_ref().map_or(0, |content| content.len() as u64);
                self.left = self.left.saturating_sub(length);
            }
            Node::Directory {
                depth: Depth::Tree, ..
            } => self.waiting.push_back(path.clone()),
            Node::Directory { .. } | Node::Link { .. } | Node::Other { .. } | Node::Unknown => {}
        }
        self.picture.insert(path, node);
    }
}

/// What is at `place` now, without what lies in it. `before` saves reading what cannot have changed.
pub(super) fn look(
    place: &Place,
    depth: Depth,
    before: Option<&Node>,
    most: u64,
) -> io::Result<Option<Node>> {
    let Some(stamp) = place.stamp()? else {
        return Ok(None);
    };
    Ok(Some(match stamp.kind {
        FileType::RegularFile => {
            if let Some(Node::File {
                stamp: known,
                settled: true,
                ..
            }) = before
                && *known == stamp
            {
                return Ok(before.cloned());
            }
            Node::File {
                content: place.content(most).map(Into::into),
                stamp,
                settled: is_settled(&stamp) && place.keeps_times(),
            }
        }
        FileType::Directory => Node::Directory {
            mode: stamp.mode,
            inode: stamp.inode,
            depth,
            names: None,
            held: (depth == Depth::Itself)
                .then(|| place.hold().ok().map(Arc::new))
                .flatten(),
        },
        FileType::Symlink => Node::Link {
            target: place.link_target(),
        },
        _ => Node::Other { inode: stamp.inode },
    }))
}

fn is_settled(stamp: &Stamp) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
    stamp.changed.0 + SETTLED_SECONDS < now
}

impl Node {
    /// Whether nothing changed that matters.
    pub(super) fn is_still(&self, now: &Self) -> bool {
        match (self, now) {
            (
                Self::File { content, stamp, .. },
                Self::File {
                    content: content_now,
                    stamp: stamp_now,
                    ..
                },
            ) => match (content, content_now) {
                (Some(before), Some(after)) => before == after && stamp.mode == stamp_now.mode,
                _ => stamp == stamp_now,
            },
            (
                Self::Directory {
                    mode, inode, depth, ..
                },
                Self::Directory {
                    mode: mode_now,
                    inode: inode_now,
                    ..
                },
            ) => match depth {
                Depth::Way => true,
                Depth::Itself => inode == inode_now,
                Depth::Tree => mode == mode_now,
            },
            (Self::Link { target }, Self::Link { target: target_now }) => target == target_now,
            (Self::Other { inode }, Self::Other { inode: inode_now }) => inode == inode_now,
            _ => false,
        }
    }

    /// Whether a picture says the same by either.
    pub(super) fn is_the_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File {
                    content,
                    stamp,
                    settled,
                },
                Self::File {
                    content: other_content,
                    stamp: other_stamp,
                    ..
                },
            ) => {
                // Some file systems never settle; there the content has just been read anyway.
                let is_known = *settled || (content.is_some() && content == other_content);
                stamp == other_stamp && is_known
            }
            (
                Self::Directory { names, depth, .. },
                Self::Directory {
                    names: other_names,
                    depth: other_depth,
                    ..
                },
            ) => names == other_names && depth == other_depth && self.is_still(other),
            (Self::Unknown, Self::Unknown) => true,
            _ => self.is_still(other),
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// Whether a change could be noticed but not undone.
    pub(super) fn is_irreplaceable(&self) -> bool {
        matches!(self, Self::File { content: None, .. })
    }
}
