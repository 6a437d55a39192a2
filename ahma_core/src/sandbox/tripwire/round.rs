//! One comparison of what is with what was, and undoing what differs.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Depth, Incident, IncidentKind, Tripwire,
    picture::{self, MOST_KEPT, Node, Picture},
    place::{self, Inode, Place},
};

/// One comparison of everything.
pub(super) struct Round<'a> {
    tripwire: &'a Tripwire,
    root: &'a Arc<OwnedFd>,
    incidents: Vec<Incident>,
    /// Directories that had to be made anew, which have another number now.
    put_back: Picture,
}

impl<'a> Round<'a> {
    pub(super) fn new(tripwire: &'a Tripwire, root: &'a Arc<OwnedFd>) -> Self {
        Self {
            tripwire,
            root,
            incidents: Vec::new(),
            put_back: Picture::new(),
        }
    }

    /// What was found, and what is known anew.
    pub(super) fn end(self) -> (Vec<Incident>, Picture) {
        (self.incidents, self.put_back)
    }

    /// Compares what is at a watched path with what was.
    pub(super) fn look(&mut self, path: &Path, depth: Depth, known: &Picture) {
        match Place::below(self.root, path) {
            Ok(place) => self.compare(&place, path, depth, known),
            // The way to it is watched as well.
            Err(error) if place::is_absence(&error) => {}
            Err(_) => self.report_unknown(path, known),
        }
    }

    fn compare(&mut self, place: &Place, path: &Path, depth: Depth, known: &Picture) {
        let before = known.get(path);
        let Ok(now) = picture::look(place, depth, before, MOST_KEPT) else {
            return self.report_unknown(path, known);
        };
        match (before, now) {
            (None, None) => {}
            (None, Some(now)) if depth == Depth::Way && now.is_directory() => {}
            (None, Some(_)) => {
                let kept = self.tripwire.quarantine(place, path);
                self.report(path, IncidentKind::Appeared, kept.is_some(), kept);
            }
            (Some(before), None) => {
                let undone = self.restore(place, path, before, known);
                self.report(path, IncidentKind::Removed, undone, None);
            }
            (Some(Node::Unknown), Some(_)) => self.report(path, IncidentKind::Unknown, false, None),
            (Some(before), Some(now)) if before.is_still(&now) => self.descend(place, path, before, known),
            (
                Some(
                    before @ Node::Directory {
                        mode,
                        depth: Depth::Tree,
                        ..
                    },
                ),
                Some(Node::Directory { .. }),
            ) => {
                let undone = place.set_directory_mode(*mode).is_ok();
                self.report(path, IncidentKind::Changed, undone, None);
                self.descend(place, path, before, known);
            }
            (Some(before), Some(_)) => {
                let kept = self.tripwire.quarantine(place, path);
                let undone = kept.is_some() && self.restore(place, path, before, known);
                self.report(path, IncidentKind::Changed, undone, kept);
            }
        }
    }

    fn descend(&mut self, place: &Place, path: &Path, before: &Node, known: &Picture) {
        let Node::Directory {
            depth: Depth::Tree,
            names: Some(names_before),
            ..
        } = before
        else {
            // If it could not be listed before, commands cannot fill it either.
            return;
        };
        let Ok((directory, names)) = place.entries() else {
            return self.report(path, IncidentKind::Unknown, false, None);
        };
        let mut names: BTreeSet<OsString> = names.into_iter().collect();
        names.extend(names_before.iter().cloned());
        for name in names {
            let path = path.join(&name);
            self.compare(&Place::within(&directory, name), &path, Depth::Tree, known);
        }
    }

    /// Makes again what was at a place that is empty now. Returns whether all of it is there.
    fn restore(&mut self, place: &Place, path: &Path, before: &Node, known: &Picture) -> bool {
        match before {
            Node::File {
                content: Some(content),
                stamp,
                ..
            } => place.create_file(content, stamp.mode).is_ok(),
            Node::File { content: None, .. } | Node::Other { .. } | Node::Unknown => false,
            Node::Link { target } => place.create_link(target).is_ok(),
            Node::Directory { held, .. } => {
                held.as_ref().is_some_and(|held| self.bring_back(held, place))
                    || self.restore_directory(place, path, before, known)
            }
        }
    }

    fn restore_directory(&mut self, place: &Place, path: &Path, before: &Node, known: &Picture) -> bool {
        let Node::Directory {
            mode, depth, names, ..
        } = before
        else {
            return false;
        };
        let below: Vec<PathBuf> = match names {
            Some(names) => names.iter().map(|name| path.join(name)).collect(),
            None => self.tripwire.watched_below(path).cloned().collect(),
        };
        let mut whole = place.create_directory().is_ok() && (names.is_some() || *depth == Depth::Way);
        for child in &below {
            if let Some(node) = known.get(child) {
                let place = Place::below(self.root, child);
                whole &= place.is_ok_and(|place| self.restore(&place, child, node, known));
            }
        }
        whole &= place.set_directory_mode(*mode).is_ok();
        // No mount covers what was made just now. Of one that was, what lay in it is not known.
        let depth = match depth {
            Depth::Itself if !path.ends_with(".git") => Depth::Tree,
            depth => *depth,
        };
        if let Ok(Some(mut made)) = picture::look(place, depth, None, 0) {
            if let Node::Directory {
                depth: Depth::Tree,
                names,
                ..
            } = &mut made
            {
                let made_again = below
                    .iter()
                    .filter_map(|child| Some(child.file_name()?.to_owned()));
                *names = Some(Arc::new(made_again.collect()));
            }
            self.put_back.insert(path.to_owned(), made);
        }
        whole
    }

    /// Moves a directory that was swapped for another one back to its place, if it is still in the scope.
    fn bring_back(&self, held: &OwnedFd, place: &Place) -> bool {
        let Ok(path) = place::whereabouts(held) else {
            return false;
        };
        let Ok(below) = path.strip_prefix(&self.tripwire.scope) else {
            return false;
        };
        let is_it = |found: &Place| {
            found
                .hold()
                .ok()
                .and_then(|found| rustix::fs::fstat(found).ok())
                .zip(rustix::fs::fstat(held).ok())
                .is_some_and(|(found, held)| Inode::of(&found) == Inode::of(&held))
        };
        Place::below(self.root, below)
            .ok()
            .filter(is_it)
            .is_some_and(|found| found.rename_onto(place).is_ok())
    }

    /// What could not be looked at before either was out of everyone's reach.
    fn report_unknown(&mut self, path: &Path, known: &Picture) {
        if !matches!(known.get(path), Some(Node::Unknown)) {
            self.report(path, IncidentKind::Unknown, false, None);
        }
    }

    fn report(&mut self, path: &Path, kind: IncidentKind, undone: bool, quarantined: Option<PathBuf>) {
        self.incidents.push(Incident {
            path: self.tripwire.scope.join(path),
            kind,
            undone,
            quarantined,
        });
    }
}
