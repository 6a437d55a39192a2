//! The directories on the way to watched names, in one pass over them.
//!
//! Every call makes two passes, and most watched names are missing. So a directory is opened once, or while it is the one
//! that is held, not at all; and a name that was missing is not looked for in a directory that nothing came to since.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    picture::Picture,
    place::{Place, Stamp, is_absence},
};

/// One pass.
pub(super) struct Ways<'a> {
    root: &'a Arc<OwnedFd>,
    known: &'a Picture,
    /// By path, of every watched name that was looked at and that others may be below.
    found: HashMap<PathBuf, Found>,
}

/// What is at a watched path.
#[derive(Debug)]
enum Found {
    /// Nothing that a watched name could be in.
    Nothing,
    Directory {
        /// `None` until it is needed.
        opened: Option<Arc<OwnedFd>>,
        /// It has the same names in it as when the known picture was taken.
        is_unchanged: bool,
    },
}

impl<'a> Ways<'a> {
    /// `now` is what is known of the root itself.
    pub(super) fn new(root: &'a Arc<OwnedFd>, now: Option<&Stamp>, known: &'a Picture) -> Self {
        let before = known.get(Path::new(""));
        let of_root = Found::Directory {
            opened: Some(Arc::clone(root)),
            is_unchanged: before
                .zip(now)
                .is_some_and(|(before, now)| before.has_names_as_of(now)),
        };
        Self {
            root,
            known,
            found: HashMap::from([(PathBuf::new(), of_root)]),
        }
    }

    /// The place of a watched path; none if it is certain that nothing is there. Those above it come first.
    pub(super) fn place(&mut self, path: &Path) -> io::Result<Option<Place>> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let opened = match self.found.get(above) {
            // Something happens there. What is below must be found anew.
            None => match Place::below(self.root, path) {
                Err(error) if is_absence(&error) => return Ok(None),
                place => return place.map(Some),
            },
            Some(Found::Nothing) => None,
            Some(Found::Directory { is_unchanged, .. })
                if *is_unchanged && !self.known.contains_key(path) =>
            {
                None
            }
            Some(Found::Directory {
                opened: Some(opened), ..
            }) => Some(Arc::clone(opened)),
            Some(Found::Directory { opened: None, .. }) => self.open(above)?,
        };
        if opened.is_none() {
            self.found.insert(path.to_owned(), Found::Nothing);
        }
        Ok(opened.map(|opened| Place::within(&opened, name.to_owned())))
    }

    /// Opens a directory that was found, for all names in it. None if it is gone again.
    fn open(&mut self, path: &Path) -> io::Result<Option<Arc<OwnedFd>>> {
        let Some(place) = self.place(path)? else {
            return Ok(None);
        };
        let new = match place.way() {
            Err(error) if is_absence(&error) => return Ok(None),
            new => Arc::new(new?),
        };
        if let Some(Found::Directory { opened, .. }) = self.found.get_mut(path) {
            *opened = Some(Arc::clone(&new));
        }
        Ok(Some(new))
    }

    /// Remembers that no watched name is to be looked for below `path`.
    pub(super) fn note_nothing(&mut self, path: &Path) {
        self.found.insert(path.to_owned(), Found::Nothing);
    }

    /// Remembers the directory at `path`.
    pub(super) fn note_directory(&mut self, path: &Path, now: &Stamp) {
        let before = self.known.get(path);
        let found = Found::Directory {
            // An equal number is the same directory, for the number of one that is held is not given to another.
            opened: before.and_then(|before| before.held_as(now.inode)),
            is_unchanged: before.is_some_and(|before| before.has_names_as_of(now)),
        };
        self.found.insert(path.to_owned(), found);
    }
}
