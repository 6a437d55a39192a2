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
    gitlinks::Gitlinks,
    links::Links,
    picture::{self, MOST_KEPT, Node, Picture},
    place::{self, Place, Stamp},
    repository::{self, Kind},
    ways::Ways,
    workspaces::Workspaces,
};

/// One comparison of everything.
pub(super) struct Round<'a> {
    tripwire: &'a Tripwire,
    root: &'a Arc<OwnedFd>,
    known: &'a Picture,
    ways: Ways<'a>,
    incidents: Vec<Incident>,
    /// Directories that had to be made anew, which have another number now.
    put_back: Picture,
}

/// How a watched path was found.
enum Outcome {
    /// As it was, and nothing that a watched name could be in.
    Nothing,
    /// As it was, or a new one that may be there.
    Directory(Stamp),
    Incident,
}

impl<'a> Round<'a> {
    pub(super) fn new(tripwire: &'a Tripwire, root: &'a Arc<OwnedFd>, known: &'a Picture) -> Self {
        let now = place::stamp_of(root).ok();
        Self {
            tripwire,
            root,
            known,
            ways: Ways::new(root, now.as_ref(), known),
            incidents: Vec::new(),
            put_back: Picture::new(),
        }
    }

    /// What was found, and what is known anew.
    pub(super) fn end(self) -> (Vec<Incident>, Picture) {
        (self.incidents, self.put_back)
    }

    /// Whether a command made a repository, and one that may stay.
    pub(super) fn has_new_repository(&mut self, kind: Kind<'_>) -> bool {
        let path = Path::new(".git");
        !self.known.contains_key(path)
            && matches!(self.ways.place(path), Ok(Some(git)) if repository::is_harmless(&git, kind))
    }

    /// Compares what is at a watched path with what was. Those above it come first.
    pub(super) fn look(&mut self, path: &Path, depth: Depth) {
        match self.ways.place(path) {
            Ok(Some(place)) => match self.compare(&place, path, depth) {
                Outcome::Nothing => self.ways.note_nothing(path),
                Outcome::Directory(stamp) => self.ways.note_directory(path, &stamp),
                Outcome::Incident => {}
            },
            Ok(None) => {}
            Err(_) => self.report_unknown(path),
        }
    }

    /// Removes links that came to be in git directories. What a link took the place of was the command's to remove.
    pub(super) fn remove_links(&mut self, before: &Links, now: &Links) {
        for path in now.new_since(before) {
            let Ok(place) = Place::below(self.root, &path) else {
                self.report(&path, IncidentKind::Unknown, false, None);
                continue;
            };
            let kept = self.tripwire.quarantine(&place, &path);
            let (kind, restored) = match before.target(&path) {
                Some(target) => (IncidentKind::Changed, place.create_link(target).is_ok()),
                None => (IncidentKind::Appeared, true),
            };
            self.report(&path, kind, kept.is_some() && restored, kept);
        }
        for path in now.unknown_since(before) {
            self.report(path, IncidentKind::Unknown, false, None);
        }
    }

    /// Moves repositories away that git would look into and then run something.
    pub(super) fn remove_repositories(&mut self, before: &Gitlinks, now: &Gitlinks) {
        // Git may read an index that cannot be read here, and then run what nobody looked at.
        let mut is_index_bad = now.is_unknown_since(before);
        for path in now.woken_since(before) {
            let path = path.join(".git");
            let place = Place::below(self.root, &path).ok();
            let kept = place.and_then(|place| self.tripwire.quarantine(&place, &path));
            is_index_bad |= kept.is_none();
            self.report(&path, IncidentKind::Appeared, kept.is_some(), kept);
        }
        if is_index_bad {
            let path = Path::new(".git/index");
            let place = Place::below(self.root, path).ok();
            let kept = place.and_then(|place| self.tripwire.quarantine(&place, path));
            self.report(path, IncidentKind::Changed, false, kept);
        }
    }

    /// Moves new files away that would open the scope in an editor.
    pub(super) fn remove_workspaces(&mut self, before: &Workspaces, now: &Workspaces) {
        for name in now.names.difference(&before.names) {
            let kept = self
                .tripwire
                .quarantine(&Place::within(self.root, name.clone()), Path::new(name));
            self.report(Path::new(name), IncidentKind::Appeared, kept.is_some(), kept);
        }
    }

    fn compare(&mut self, place: &Place, path: &Path, depth: Depth) -> Outcome {
        let before = self.known.get(path);
        let Ok(now) = picture::look(place, depth, before, MOST_KEPT) else {
            self.report_unknown(path);
            return Outcome::Incident;
        };
        match (before, now) {
            (None, None) => return Outcome::Nothing,
            (None, Some(Node::Directory { stamp, .. })) if depth == Depth::Way => {
                return Outcome::Directory(stamp);
            }
            (None, Some(_)) => {
                let kept = self.tripwire.quarantine(place, path);
                self.report(path, IncidentKind::Appeared, kept.is_some(), kept);
            }
            (Some(before), None) => {
                let undone = self.restore(place, path, before);
                self.report(path, IncidentKind::Removed, undone, None);
            }
            (Some(Node::Unknown), Some(_)) => self.report(path, IncidentKind::Unknown, false, None),
            (Some(before), Some(now)) if before.is_still(&now) => {
                let Node::Directory { stamp, .. } = now else {
                    return Outcome::Nothing;
                };
                self.descend(place, path, before, &stamp);
                return Outcome::Directory(stamp);
            }
            (
                Some(
                    before @ Node::Directory {
                        stamp,
                        depth: Depth::Tree,
                        ..
                    },
                ),
                Some(Node::Directory { stamp: now, .. }),
            ) => {
                let undone = place.set_directory_mode(stamp.mode).is_ok();
                self.report(path, IncidentKind::Changed, undone, None);
                self.descend(place, path, before, &now);
            }
            (Some(before), Some(_)) => {
                let kept = self.tripwire.quarantine(place, path);
                let undone = kept.is_some() && self.restore(place, path, before);
                self.report(path, IncidentKind::Changed, undone, kept);
            }
        }
        Outcome::Incident
    }

    fn descend(&mut self, place: &Place, path: &Path, before: &Node, now: &Stamp) {
        let Node::Directory {
            depth: Depth::Tree,
            names: Some(names_before),
            ..
        } = before
        else {
            // If it could not be listed before, commands cannot fill it either.
            return;
        };
        let listed = match before.names_as_of(now) {
            Some(names) if names.is_empty() => return,
            Some(_) => place.way().map(|directory| (Arc::new(directory), Vec::new())),
            None => place.entries(),
        };
        let Ok((directory, names)) = listed else {
            return self.report(path, IncidentKind::Unknown, false, None);
        };
        let mut names: BTreeSet<OsString> = names.into_iter().collect();
        names.extend(names_before.iter().cloned());
        for name in names {
            let path = path.join(&name);
            self.compare(&Place::within(&directory, name), &path, Depth::Tree);
        }
    }

    /// Makes again what was at a place that is empty now. Returns whether all of it is there.
    fn restore(&mut self, place: &Place, path: &Path, before: &Node) -> bool {
        match before {
            Node::File {
                content: Some(content),
                stamp,
                ..
            } => place.create_file(content, stamp.mode).is_ok(),
            Node::File { content: None, .. } | Node::Other { .. } | Node::Unknown => false,
            Node::Link { target } => place.create_link(target).is_ok(),
            Node::Directory { depth, held, .. } => {
                let held = held.as_ref().filter(|_| *depth == Depth::Itself);
                held.is_some_and(|held| self.bring_back(held, place))
                    || self.restore_directory(place, path, before)
            }
        }
    }

    fn restore_directory(&mut self, place: &Place, path: &Path, before: &Node) -> bool {
        let Node::Directory {
            stamp, depth, names, ..
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
            if let Some(node) = self.known.get(child) {
                let place = Place::below(self.root, child);
                whole &= place.is_ok_and(|place| self.restore(&place, child, node));
            }
        }
        whole &= place.set_directory_mode(stamp.mode).is_ok();
        // No mount covers what was made just now. Of one that was, what lay in it is not known.
        let depth = match depth {
            Depth::Itself if !path.ends_with(".git") => Depth::Tree,
            depth => *depth,
        };
        if let Ok(Some(mut made)) = picture::look(place, depth, None, 0) {
            made.hold(place, path, None);
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
        let Ok(stamp) = place::stamp_of(held) else {
            return false;
        };
        let is_it = |found: &Place| found.hold_as(stamp.inode).is_some();
        Place::below(self.root, below)
            .ok()
            .filter(is_it)
            .is_some_and(|found| found.rename_onto(place).is_ok())
    }

    /// What could not be looked at before either was out of everyone's reach.
    fn report_unknown(&mut self, path: &Path) {
        if !matches!(self.known.get(path), Some(Node::Unknown)) {
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
