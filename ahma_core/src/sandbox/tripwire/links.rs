//! Links in git directories.
//!
//! Git writes some of its files in place, its logs and messages for instance, with words that commands choose, such as the
//! names of branches, and clears whole directories away. A link there would send that anywhere. What git keeps there changes
//! as git likes; only links must not come to be. Git makes none itself.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::{OsStr, OsString},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Dir, FileType};

use super::{
    picture::{Root, is_settled},
    place::{self, Place, Stamp},
};

/// Directories in a git directory of which only the names directly in them are looked at, and those directories in them that
/// are looked into all the same. They may hold thousands, of objects that are never written in place, or repositories.
const STORES: [(&str, &[&str]); 4] = [
    ("annex/objects", &[]),
    ("lfs/objects", &[]),
    ("modules", &[]),
    ("objects", &["info", "pack"]),
];

/// Where a link leads that `git init` makes for a moment, to see whether it can; and how long its name is, which begins
/// with a t.
const TRIAL: (&str, usize) = ("testing", 7);

/// The links in git directories, and the directories that they were looked for in.
#[derive(Debug, Default)]
pub(super) struct Links {
    listings: HashMap<PathBuf, Listing>,
    /// Directories that could not be listed.
    unknown: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone)]
struct Listing {
    stamp: Stamp,
    /// An equal stamp means that the same names are in it.
    settled: bool,
    directories: Vec<OsString>,
    /// By name, with where they lead.
    links: BTreeMap<OsString, PathBuf>,
}

impl Links {
    /// Looks for links. `earlier` saves listing what cannot have changed.
    pub(super) fn take(root: &Root, git_directories: &[PathBuf], earlier: &Self) -> Self {
        let mut taken = Self::default();
        for git in git_directories {
            let mut waiting = vec![git.clone()];
            while let Some(path) = waiting.pop() {
                let store = STORES.iter().find(|(store, _)| {
                    path.strip_prefix(git)
                        .is_ok_and(|below| below == Path::new(store))
                });
                let is_looked_into = |name: &&OsString| {
                    store.is_none_or(|(_, besides)| besides.iter().any(|other| name == other))
                };
                if let Some(listing) = taken.look_into(root, &path, earlier) {
                    let directories = listing.directories.iter().filter(is_looked_into);
                    waiting.extend(directories.map(|name| path.join(name)));
                }
            }
        }
        taken
    }

    /// How many directories were looked into.
    pub(super) fn len(&self) -> usize {
        self.listings.len()
    }

    /// Where the link at a path leads.
    pub(super) fn target(&self, path: &Path) -> Option<&PathBuf> {
        self.listings.get(path.parent()?)?.links.get(path.file_name()?)
    }

    /// Links that are new, or lead elsewhere.
    pub(super) fn new_since(&self, earlier: &Self) -> BTreeSet<PathBuf> {
        let all = self.listings.iter().flat_map(|(path, listing)| {
            let links = listing.links.iter();
            links.map(move |(name, target)| (path.join(name), target))
        });
        all.filter(|(path, target)| earlier.target(path) != Some(target) && !is_trial(path, target))
            .map(|(path, _)| path)
            .collect()
    }

    /// Directories that can be listed no more.
    pub(super) fn unknown_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        self.unknown.difference(&earlier.unknown)
    }

    fn look_into(&mut self, root: &Root, path: &Path, earlier: &Self) -> Option<&Listing> {
        match Listing::of(root, path, earlier.listings.get(path)) {
            Ok(listing) => Some(self.listings.entry(path.to_owned()).or_insert(listing)),
            Err(error) if place::is_absence(&error) => None,
            Err(_) => {
                self.unknown.insert(path.to_owned());
                None
            }
        }
    }
}

fn is_trial(path: &Path, target: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    target == Path::new(TRIAL.0) && name.len() == TRIAL.1 && name.starts_with(b"t")
}

impl Listing {
    fn of(root: &Root, path: &Path, earlier: Option<&Self>) -> io::Result<Self> {
        // The root is open already; elsewhere a descriptor to pass through wakes nobody who watches.
        let place = match path.parent() {
            None => None,
            Some(_) => Some(Place::below(&root.directory, path)?),
        };
        let stamp = match &place {
            None => place::stamp_of(&root.directory)?,
            Some(place) => place::stamp_of(&place.way()?)?,
        };
        if let Some(earlier) = earlier
            && earlier.settled
            && earlier.stamp == stamp
        {
            return Ok(earlier.clone());
        }
        let directory = match place {
            None => Arc::clone(&root.directory),
            Some(place) => Arc::new(place.directory()?),
        };
        let mut listing = Self {
            stamp,
            settled: root.telling == Some(stamp.inode.device) && is_settled(&stamp),
            directories: Vec::new(),
            links: BTreeMap::new(),
        };
        listing.read(&directory)?;
        Ok(listing)
    }

    fn read(&mut self, directory: &Arc<OwnedFd>) -> io::Result<()> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let place = Place::within(directory, name.clone());
            let kind = match entry.file_type() {
                // Not every file system tells.
                FileType::Unknown => place.stamp()?.map(|stamp| stamp.kind),
                kind => Some(kind),
            };
            match kind {
                Some(FileType::Directory) => self.directories.push(name),
                Some(FileType::Symlink) => {
                    self.links.insert(name, place.link_target());
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}
