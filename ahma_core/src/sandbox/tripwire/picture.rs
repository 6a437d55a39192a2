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

use super::{
    place::{self, Inode, Place, Stamp},
    ways::Ways,
};

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
        stamp: Stamp,
        /// An equal stamp means that the same names are in it.
        settled: bool,
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

/// Looks at every watched path, parents first. `earlier` saves looking at what cannot have changed.
pub(super) fn take(root: &Root, watched: &[(PathBuf, Depth)], earlier: &Picture) -> Picture {
    let stamp = place::stamp_of(&root.directory).ok();
    let mut ways = Ways::new(&root.directory, stamp.as_ref(), earlier);
    let mut taking = Taking {
        root,
        earlier,
        picture: Picture::new(),
        waiting: VecDeque::new(),
        left: 0,
    };
    if let Some(stamp) = stamp {
        let mut node = Node::directory(stamp, Depth::Way);
        node.settle(root.telling);
        taking.picture.insert(PathBuf::new(), node);
    }
    for (path, depth) in watched {
        match ways.place(path) {
            Ok(Some(place)) => taking.take(&place, path, *depth),
            Ok(None) => continue,
            Err(_) => taking.insert(path.clone(), Node::Unknown),
        }
        match taking.picture.get(path) {
            Some(Node::Directory { stamp, depth, .. }) if *depth != Depth::Tree => {
                ways.note_directory(path, stamp);
            }
            // What is below it may be there all the same.
            Some(Node::Unknown) => {}
            // What is in a tree has been seen with it.
            Some(Node::Directory { .. } | Node::File { .. } | Node::Link { .. } | Node::Other { .. })
            | None => {
                ways.note_nothing(path);
            }
        }
    }
    taking.picture
}

/// The directory that all watched paths are below.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) directory: Arc<OwnedFd>,
    /// Its file system, if a directory's time tells there when a name comes or goes.
    pub(super) telling: Option<u64>,
}

impl Root {
    pub(super) fn new(directory: OwnedFd) -> Self {
        Self {
            telling: place::telling_device(&directory),
            directory: Arc::new(directory),
        }
    }
}

/// A picture being taken, of each tree what lies highest first.
struct Taking<'a> {
    root: &'a Root,
    earlier: &'a Picture,
    picture: Picture,
    /// Directories to look into; by path, because a wide tree would need more descriptors than there are.
    waiting: VecDeque<PathBuf>,
    /// How many bytes of this tree are still kept.
    left: u64,
}

impl Taking<'_> {
    fn take(&mut self, place: &Place, path: &Path, depth: Depth) {
        self.left = MOST_KEPT;
        self.add(place, path.to_owned(), depth);
        if self.waiting.pop_front().is_some() {
            self.add_entries(place, path);
        }
        while let Some(path) = self.waiting.pop_front() {
            if let Ok(place) = Place::below(&self.root.directory, &path) {
                self.add_entries(&place, &path);
            }
        }
    }

    fn add_entries(&mut self, place: &Place, path: &Path) {
        let Some((opened, listed)) = self.entries(place, path) else {
            return;
        };
        for name in listed.iter() {
            let place = Place::within(&opened, name.clone());
            self.add(&place, path.join(name), Depth::Tree);
        }
        if let Some(Node::Directory { names, .. }) = self.picture.get_mut(path) {
            *names = Some(listed);
        }
    }

    /// The directory at `place`, which is in the picture, and the names in it.
    fn entries(&self, place: &Place, path: &Path) -> Option<(Arc<OwnedFd>, Arc<BTreeSet<OsString>>)> {
        if let (Some(earlier), Some(Node::Directory { stamp, .. })) =
            (self.earlier.get(path), self.picture.get(path))
            && let Some(names) = earlier.names_as_of(stamp)
        {
            return Some((Arc::new(place.way().ok()?), Arc::clone(names)));
        }
        let (opened, listed) = place.entries().ok()?;
        Some((opened, Arc::new(listed.into_iter().collect())))
    }

    fn add(&mut self, place: &Place, path: PathBuf, depth: Depth) {
        let before = self.earlier.get(&path);
        let node = match place.stamp() {
            Ok(Some(stamp)) => {
                let depth = closer(depth, &path, before, &stamp);
                let mut node = Node::at(place, stamp, depth, before, self.left);
                node.settle(self.root.telling);
                node.hold(place, &path, before);
                node
            }
            Ok(None) => return,
            Err(_) => Node::Unknown,
        };
        self.insert(path, node);
    }

    fn insert(&mut self, path: PathBuf, node: Node) {
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

/// A directory that a mount covered, and that is another one by now, is covered no more.
fn closer(depth: Depth, path: &Path, before: Option<&Node>, now: &Stamp) -> Depth {
    match before {
        Some(Node::Directory {
            depth: Depth::Tree, ..
        }) => Depth::Tree,
        Some(Node::Directory { stamp, .. })
            if depth == Depth::Itself && !path.ends_with(".git") && stamp.inode != now.inode =>
        {
            Depth::Tree
        }
        _ => depth,
    }
}

/// What is at `place` now, without what lies in it. `before` saves reading what cannot have changed.
pub(super) fn look(
    place: &Place,
    depth: Depth,
    before: Option<&Node>,
    most: u64,
) -> io::Result<Option<Node>> {
    let stamp = place.stamp()?;
    Ok(stamp.map(|stamp| Node::at(place, stamp, depth, before, most)))
}

pub(super) fn is_settled(stamp: &Stamp) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
    stamp.changed.0 + SETTLED_SECONDS < now
}

impl Node {
    fn at(place: &Place, stamp: Stamp, depth: Depth, before: Option<&Self>, most: u64) -> Self {
        match stamp.kind {
            FileType::RegularFile => match before {
                Some(
                    before @ Self::File {
                        stamp: known,
                        settled: true,
                        ..
                    },
                ) if *known == stamp => before.clone(),
                _ => Self::File {
                    content: place.content(most).map(Into::into),
                    stamp,
                    settled: is_settled(&stamp) && place.keeps_times(),
                },
            },
            FileType::Directory => Self::directory(stamp, depth),
            FileType::Symlink => Self::Link {
                target: place.link_target(),
            },
            _ => Self::Other { inode: stamp.inode },
        }
    }

    fn directory(stamp: Stamp, depth: Depth) -> Self {
        Self::Directory {
            stamp,
            settled: false,
            depth,
            names: None,
            held: None,
        }
    }

    /// Finds out whether the stamp of a directory is worth remembering.
    fn settle(&mut self, telling: Option<u64>) {
        if let Self::Directory { stamp, settled, .. } = self {
            *settled = telling == Some(stamp.inode.device) && is_settled(stamp);
        }
    }

    /// Holds the directory at `place` if that is worth a descriptor: those on the way to others may be many, but for
    /// those at the top.
    pub(super) fn hold(&mut self, place: &Place, path: &Path, before: Option<&Self>) {
        if let Self::Directory {
            stamp, depth, held, ..
        } = self
        {
            let is_worth = match depth {
                Depth::Way => path.parent() == Some(Path::new("")),
                Depth::Itself => true,
                Depth::Tree => false,
            };
            let known = before.and_then(|before| before.held_as(stamp.inode));
            *held = match known {
                _ if !is_worth => None,
                Some(known) => Some(known),
                None => place.hold_as(stamp.inode),
            };
        }
    }

    /// The descriptor of a directory, if it is this one.
    pub(super) fn held_as(&self, inode: Inode) -> Option<Arc<OwnedFd>> {
        match self {
            Self::Directory { stamp, held, .. } if stamp.inode == inode => held.clone(),
            _ => None,
        }
    }

    /// Whether this is a directory that has the same names in it as long as its stamp is this one.
    pub(super) fn has_names_as_of(&self, now: &Stamp) -> bool {
        matches!(self, Self::Directory { stamp, settled: true, .. } if stamp == now)
    }

    /// The names in a directory, if they can be told from its stamp.
    pub(super) fn names_as_of(&self, now: &Stamp) -> Option<&Arc<BTreeSet<OsString>>> {
        match self {
            Self::Directory { names, .. } if self.has_names_as_of(now) => names.as_ref(),
            _ => None,
        }
    }

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
                (Some(before), Some(after)) => {
                    // By a name that came to it, git could write to it as to a log or a message of its own.
                    let has_its_names = stamp_now.names <= 1 || stamp == stamp_now;
                    before == after && stamp.mode == stamp_now.mode && has_its_names
                }
                _ => stamp == stamp_now,
            },
            (Self::Directory { stamp, depth, .. }, Self::Directory { stamp: stamp_now, .. }) => match depth {
                Depth::Way => true,
                Depth::Itself => stamp.inode == stamp_now.inode,
                Depth::Tree => stamp.mode == stamp_now.mode,
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

    /// How much is read again of what did not change.
    pub(super) fn bytes_to_read(&self) -> usize {
        match self {
            Self::File {
                content: Some(content),
                settled: false,
                ..
            } => content.len(),
            _ => 0,
        }
    }

    /// Whether a change could be noticed but not undone.
    pub(super) fn is_irreplaceable(&self) -> bool {
        matches!(self, Self::File { content: None, .. })
    }
}
