//! Repositories in the project that git looks into by itself.
//!
//! They are listed in the index of the repository around them: submodules, and whatever else a command lists there. For
//! `git status` git runs in each of them, with its configuration and hooks.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::fs::FileType;

use super::{
    index::{self, Index},
    picture::{Root, is_settled},
    place::{Place, Stamp, is_absence},
    repository::{self, Kind},
};
use crate::call::normalise;

/// Of an index so much is read: that of half a million files.
const MOST_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// And of the index of a repository in it, of which there may be many.
const MOST_INNER_BYTES: u64 = 8 * 1024 * 1024;

/// What looking into a repository counts for, in bytes to read.
const LOOK_BYTES: u64 = 8 * 1024;

/// A file `.git` is one line.
const MOST_FILE_BYTES: u64 = 4096;

/// Repositories in each other are followed so far.
const DEEPEST: usize = 4;

/// What the index of the scope lists.
#[derive(Debug, Default)]
pub(super) struct Gitlinks {
    /// Of the index, if an equal one means an equal content.
    settled: Option<Stamp>,
    size: u64,
    /// `None` where the index cannot be read.
    paths: Option<Arc<BTreeSet<PathBuf>>>,
    /// Those that would make git run something already. They are the user's.
    awake: BTreeSet<PathBuf>,
}

impl Gitlinks {
    /// Looks at the index, and at what it lists. `earlier` saves reading an index that cannot have changed.
    pub(super) fn take(root: &Root, earlier: &Self) -> Self {
        let mut taken = Self::listed(root, earlier);
        let paths = taken.paths.iter().flat_map(|paths| paths.iter());
        taken.awake = paths
            .filter(|path| !is_asleep(&root.directory, path, 0))
            .cloned()
            .collect();
        taken
    }

    fn listed(root: &Root, earlier: &Self) -> Self {
        let git = Path::new(".git");
        let place = Place::below(&root.directory, &git.join("index"));
        let stamp = place.as_ref().ok().and_then(|place| place.stamp().ok()?);
        if stamp.is_some() && stamp == earlier.settled {
            return Self {
                settled: stamp,
                size: earlier.size,
                paths: earlier.paths.clone(),
                awake: BTreeSet::new(),
            };
        }
        let paths = match stamp {
            // One that a command made is removed; see `links`.
            Some(stamp) if stamp.kind == FileType::Symlink => Some(BTreeSet::new()),
            _ => paths(&root.directory, git, MOST_INDEX_BYTES),
        };
        let keeps_times = place.is_ok_and(|place| place.keeps_times());
        Self {
            settled: stamp.filter(|stamp| keeps_times && is_settled(stamp)),
            size: stamp.map_or(0, |stamp| stamp.size),
            paths: paths.map(Arc::new),
            awake: BTreeSet::new(),
        }
    }

    /// How much may have to be read to look again.
    pub(super) fn bytes_to_read(&self) -> usize {
        let looks = self.paths.as_ref().map_or(0, |paths| paths.len() as u64);
        usize::try_from(self.size + looks * LOOK_BYTES).unwrap_or(usize::MAX)
    }

    /// Those that make git run something since then.
    pub(super) fn woken_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        self.awake.difference(&earlier.awake)
    }

    /// Whether the index can be read no more.
    pub(super) fn is_unknown_since(&self, earlier: &Self) -> bool {
        self.paths.is_none() && earlier.paths.is_some()
    }
}

/// What the index of a git directory lists; `None` if it cannot be read, or not in as many bytes.
fn paths(root: &Arc<OwnedFd>, git: &Path, most_bytes: u64) -> Option<BTreeSet<PathBuf>> {
    let read = |name: &str| match Place::below(root, &git.join(name)) {
        Ok(place) => match place.stamp() {
            Ok(None) => Some(None),
            Ok(Some(_)) => Some(Some(place.content(most_bytes)?)),
            Err(_) => None,
        },
        Err(error) => is_absence(&error).then_some(None),
    };
    let Some(content) = read("index")? else {
        return Some(BTreeSet::new());
    };
    // One that cannot be read is a link of the user's, or git cannot read it either.
    let config = read("config").flatten().unwrap_or_default();
    let name_length = repository::name_length(&String::from_utf8_lossy(&config))?;
    let Index { mut links, shared } = index::read(&content, name_length)?;
    for name in shared {
        // What an index shares with others is in a file of its own.
        links.extend(index::read(&read(&name)??, name_length)?.links);
    }
    // A part of a shared index has no name here. Which one it is nobody needs to know: git makes none by itself, nor any
    // other name that leads elsewhere than it seems to.
    let is_plain = |name: &Vec<u8>| {
        name.split(|byte| *byte == b'/')
            .all(|part| !part.is_empty() && part != b"." && part != b"..")
    };
    let are_plain = links.iter().all(is_plain);
    are_plain.then(|| links.iter().map(|name| OsStr::from_bytes(name).into()).collect())
}

/// Whether git, looking into the repository at `path`, runs nothing.
fn is_asleep(root: &Arc<OwnedFd>, path: &Path, depth: usize) -> bool {
    let link = path.join(".git");
    let place = match Place::below(root, &link) {
        Ok(place) => place,
        // Git passes no links on the way either.
        Err(error) => return is_absence(&error),
    };
    let git = match place.stamp() {
        Ok(None) => return true,
        Ok(Some(stamp)) if stamp.kind == FileType::Directory => link,
        Ok(Some(_)) => match led_to(&place, path) {
            Some(git) => git,
            None => return false,
        },
        Err(_) => return false,
    };
    // As git writes it for submodules.
    let up: PathBuf = git.components().map(|_| Component::ParentDir).collect();
    let kind = Kind::Inner { tree: &up.join(path) };
    let is_harmless = Place::below(root, &git).is_ok_and(|git| repository::is_harmless(&git, kind));
    let inner_sleep = || {
        paths(root, &git, MOST_INNER_BYTES).is_some_and(|inner| {
            let sleeps = |inner: &PathBuf| is_asleep(root, &path.join(inner), depth + 1);
            inner.is_empty() || depth < DEEPEST && inner.iter().all(sleeps)
        })
    };
    is_harmless && inner_sleep()
}

/// The directory below the scope that a file `.git` leads to.
fn led_to(file: &Place, path: &Path) -> Option<PathBuf> {
    let text = String::from_utf8(file.content(MOST_FILE_BYTES)?).ok()?;
    let target = path.join(text.strip_prefix("gitdir:")?.trim());
    let ups = target.components().filter(|part| *part == Component::ParentDir);
    // Those that lead out of the scope would be lost.
    let is_inside = target.is_relative() && ups.count() <= path.components().count();
    is_inside.then(|| normalise(&target))
}
