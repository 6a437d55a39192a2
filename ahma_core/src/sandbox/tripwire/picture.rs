//! What the watched names were when no command ran: enough to tell a change, and to undo it.

use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::FileType;

use super::place::{Place, Stamp};

/// Protected trees are small. Of a larger one, what lies past this is not watched.
const MOST_ENTRIES: usize = 512;
const MOST_BYTES: u64 = 1024 * 1024;

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

/// The nodes by their path below the scope, parents before what lies in them.
pub(super) type Picture = BTreeMap<PathBuf, Node>;

/// One file, directory or link as it was.
#[derive(Debug, Clone)]
pub(super) enum Node {
    File {
        /// Not of long files.
        content: Option<Arc<[u8]>>,
        stamp: Stamp,
        /// An equal stamp means an equal content.
        settled: bool,
    },
    Directory {
        mode: u32,
        inode: u64,
        depth: Depth,
        /// Every entry is in the picture.
        complete: bool,
        /// Finds the directory again wherever it was moved, and keeps its number from being used again.
        held: Option<Arc<OwnedFd>>,
    },
    Link {
        target: PathBuf,
    },
    /// A pipe, socket or device.
    Other {
        inode: u64,
    },
}

/// How much of one tree is still taken in.
struct Budget {
    entries: usize,
    bytes: u64,
}

/// Adds what is at `place` to the picture. Contents are taken from `earlier` where nothing can have changed.
pub(super) fn take(place: &Place, path: &Path, depth: Depth, earlier: &Picture, picture: &mut Picture) {
    let mut budget = Budget {
        entries: MOST_ENTRIES,
        bytes: MOST_BYTES,
    };
    add(place, path, depth, earlier, picture, &mut budget);
}

fn add(
    place: &Place,
    path: &Path,
    depth: Depth,
    earlier: &Picture,
    picture: &mut Picture,
    budget: &mut Budget,
) {
    let Some(mut node) = look(place, depth, earlier.get(path), budget.bytes) else {
        return;
    };
    budget.entries = budget.entries.saturating_sub(1);
    match &mut node {
        Node::File { content, .. } => {
            let length = content.as_ref().map_or(0, |content| content.len() as u64);
            budget.bytes = budget.bytes.saturating_sub(length);
        }
        Node::Directory {
            depth: Depth::Tree,
            complete,
            ..
        } => {
            let below = place.directory();
            for name in place.names() {
                let below = below.as_ref().map_err(|error| error.kind().into());
                let entry = below.and_then(|directory| Place::below(directory, Path::new(&name)));
                match entry {
                    Ok(entry) if budget.entries > 0 => {
                        add(&entry, &path.join(&name), Depth::Tree, earlier, picture, budget);
                    }
                    _ => *complete = false,
                }
            }
        }
        Node::Directory { .. } | Node::Link { .. } | Node::Other { .. } => {}
    }
    picture.insert(path.to_owned(), node);
}

/// What is at `place` now, without what lies in it. `before` saves reading what cannot have changed.
pub(super) fn look(place: &Place, depth: Depth, before: Option<&Node>, most: u64) -> Option<Node> {
    let stamp = place.stamp()?;
    Some(match stamp.kind {
        FileType::RegularFile => {
            if let Some(Node::File {
                stamp: known,
                settled: true,
                ..
            }) = before
                && *known == stamp
            {
                return before.cloned();
            }
            Node::File {
                content: place.content(most).map(Into::into),
                stamp,
                settled: is_settled(&stamp),
            }
        }
        FileType::Directory => Node::Directory {
            mode: stamp.mode,
            inode: stamp.inode,
            depth,
            complete: true,
            held: (depth == Depth::Itself)
                .then(|| place.hold().ok().map(Arc::new))
                .flatten(),
        },
        FileType::Symlink => Node::Link {
            target: place.link_target(),
        },
        _ => Node::Other { inode: stamp.inode },
    })
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

    pub(super) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }
}

/// The longest content that is worth keeping.
pub(super) const MOST_KEPT: u64 = MOST_BYTES;
