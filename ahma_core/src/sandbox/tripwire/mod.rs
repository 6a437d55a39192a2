//! The tripwire: files that programs outside the sandbox act on later must be after a command what they were before it.
//!
//! The full tier's read-only mounts cover what existed when the jail started, until somebody outside replaces it: the
//! kernel then drops the mount. The tripwire covers the rest: names that were missing or replaced, and in the core tier
//! everything protected. What appeared is moved to a quarantine directory, what changed is moved there and put back,
//! and the result says so in a sentence. Nothing is deleted. While the command runs there is a window; closing it needs
//! the full tier.
//!
//! It runs outside the sandbox, so it must never follow a link that a command made: see [`place`].

mod picture;
mod place;
mod repository;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

pub use picture::Depth;
use picture::{MOST_KEPT, Node, Picture};
use place::Place;

/// So many nodes are looked at faster than another thread is asked to do it.
const QUICK: usize = 64;

/// Watches protected paths across the operations of one server.
#[derive(Debug)]
pub struct Tripwire {
    scope: PathBuf,
    /// `None` where there is no scope; then nothing is watched.
    root: Option<OwnedFd>,
    /// Paths below the scope, parents first.
    watched: Vec<(PathBuf, Depth)>,
    quick: bool,
    quarantine: PathBuf,
    known: Mutex<Known>,
}

/// What is known to be good. Operations overlap, so the picture is taken when the first one starts.
#[derive(Debug, Default)]
struct Known {
    running: usize,
    picture: Picture,
}

/// What the tripwire found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    pub path: PathBuf,
    pub kind: IncidentKind,
    /// Where the command's version lies now.
    pub quarantined: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncidentKind {
    Appeared,
    Changed,
    Removed,
    /// It changed, and what it was is not known.
    Spoiled,
}

impl Tripwire {
    /// `watched` are absolute paths in `scope`; others are left out.
    pub fn new(scope: &Path, watched: Vec<(PathBuf, Depth)>, quarantine: PathBuf) -> Self {
        let mut relative: Vec<(PathBuf, Depth)> = Vec::new();
        for (path, depth) in &watched {
            let Ok(below) = path.strip_prefix(scope) else {
                continue;
            };
            let way = below.ancestors().skip(1).filter(|above| *above != Path::new(""));
            relative.extend(way.map(|above| (above.to_owned(), Depth::Way)));
            relative.push((below.to_owned(), *depth));
        }
        // By path, the closer watch first; then only that one is kept.
        relative.sort_by_key(|(path, depth)| (path.clone(), std::cmp::Reverse(*depth as u8)));
        relative.dedup_by(|later, kept| later.0 == kept.0);
        let mut tripwire = Self {
            scope: scope.to_owned(),
            root: place::open_root(scope).ok(),
            watched: relative,
            quick: false,
            quarantine,
            known: Mutex::default(),
        };
        let now = tripwire.picture(&Picture::new());
        tripwire.quick = now.len() <= QUICK;
        tripwire.lock().picture = now;
        tripwire
    }

    /// Called before a command starts.
    pub async fn arm(self: Arc<Self>) -> Armed {
        let tripwire = Arc::clone(&self);
        self.where_it_fits(move || tripwire.note()).await;
        Armed { tripwire: Some(self) }
    }

    async fn where_it_fits<T: Send + 'static>(&self, look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.quick {
            return Some(look());
        }
        tokio::task::spawn_blocking(look).await.ok()
    }

    fn note(&self) {
        let mut known = self.lock();
        if known.running == 0 {
            known.picture = self.picture(&known.picture);
        }
        known.running += 1;
    }

    fn picture(&self, earlier: &Picture) -> Picture {
        let mut picture = Picture::new();
        for (path, depth) in &self.watched {
            let Some(place) = self.place(path) else { continue };
            if picture.contains_key(path) {
                continue;
            }
            // A directory that a mount covered, and that is another one by now, is covered no more.
            let depth = match earlier.get(path) {
                Some(Node::Directory { inode, .. })
                    if *depth == Depth::Itself
                        && !path.ends_with(".git")
                        && place.stamp().is_some_and(|now| now.inode != *inode) =>
                {
                    Depth::Tree
                }
                Some(Node::Directory {
                    depth: Depth::Tree, ..
                }) => Depth::Tree,
                _ => *depth,
            };
            picture::take(&place, path, depth, earlier, &mut picture);
        }
        picture
    }

    fn check(&self) -> Vec<Incident> {
        let mut known = self.lock();
        known.running = known.running.saturating_sub(1);
        let mut round = Round {
            tripwire: self,
            incidents: Vec::new(),
            put_back: Picture::new(),
        };
        let new_repository = !known.picture.contains_key(Path::new(".git"))
            && self
                .place(Path::new(".git"))
                .is_some_and(|git| repository::is_harmless(&git));
        for (path, depth) in &self.watched {
            let seen = path.ancestors().skip(1).any(|above| {
                matches!(
                    known.picture.get(above),
                    Some(Node::Directory {
                        depth: Depth::Tree,
                        ..
                    })
                )
            });
            if !(seen || new_repository && path.starts_with(".git")) {
                round.compare(path, *depth, &known.picture);
            }
        }
        let Round {
            incidents, put_back, ..
        } = round;
        known.picture.extend(put_back);
        incidents
    }

    /// The place of a watched path, unless a link or nothing is on the way to it.
    fn place(&self, path: &Path) -> Option<Place> {
        Place::below(self.root.as_ref()?, path).ok()
    }

    /// Moves what is at a place away: to the quarantine, or where that is on another file system, to a name in the scope
    /// that means nothing to anyone.
    fn quarantine(&self, place: &Place, path: &Path) -> Option<PathBuf> {
        let mut name = OsString::from(format!("{:08x}-", rand::random::<u32>()));
        name.push(path.file_name()?);
        let moved = || -> io::Result<PathBuf> {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.quarantine)?;
            fs::set_permissions(&self.quarantine, fs::Permissions::from_mode(0o700))?;
            place.rename_to(place::open_root(&self.quarantine)?, &name)?;
            Ok(self.quarantine.join(&name))
        };
        if let Ok(there) = moved() {
            return Some(there);
        }
        let mut here = OsString::from("ahma-quarantine-");
        here.push(&name);
        place.rename_to(self.root.as_ref()?, &here).ok()?;
        Some(self.scope.join(here))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// One comparison of everything.
struct Round<'a> {
    tripwire: &'a Tripwire,
    incidents: Vec<Incident>,
    /// Directories that had to be made anew, which have another number now.
    put_back: Picture,
}

impl Round<'_> {
    fn compare(&mut self, path: &Path, depth: Depth, known: &Picture) {
        let before = known.get(path);
        let Some(place) = self.tripwire.place(path) else {
            return;
        };
        let now = picture::look(&place, depth, before, MOST_KEPT);
        match (before, now) {
            (None, None) => {}
            (None, Some(now)) if depth == Depth::Way && now.is_directory() => {}
            (None, Some(_)) => self.quarantine(&place, path, IncidentKind::Appeared),
            (Some(before), None) => {
                self.restore(&place, path, before, known);
                self.report(path, IncidentKind::Removed, None);
            }
            (Some(before), Some(now)) if before.is_still(&now) => self.descend(&place, path, before, known),
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
                place.set_directory_mode(*mode).ok();
                self.report(path, IncidentKind::Changed, None);
                self.descend(&place, path, before, known);
            }
            (Some(before), Some(_)) => {
                let kind = match before {
                    Node::File { content: None, .. } | Node::Other { .. } => IncidentKind::Spoiled,
                    _ => IncidentKind::Changed,
                };
                self.quarantine(&place, path, kind);
                self.restore(&place, path, before, known);
            }
        }
    }

    fn descend(&mut self, place: &Place, path: &Path, before: &Node, known: &Picture) {
        let Node::Directory {
            depth: Depth::Tree,
            complete,
            ..
        } = before
        else {
            return;
        };
        let mut names: BTreeSet<OsString> = place.names().into_iter().collect();
        if !complete {
            names.retain(|name| known.contains_key(&path.join(name)));
        }
        names.extend(children(path, known).filter_map(|child| Some(child.file_name()?.to_owned())));
        for name in names {
            self.compare(&path.join(name), Depth::Tree, known);
        }
    }

    /// Makes again what was at a place that is empty now.
    fn restore(&mut self, place: &Place, path: &Path, before: &Node, known: &Picture) {
        match before {
            Node::File {
                content: Some(content),
                stamp,
                ..
            } => {
                place.create_file(content, stamp.mode).ok();
            }
            Node::File { content: None, .. } | Node::Other { .. } => {}
            Node::Link { target } => {
                place.create_link(target).ok();
            }
            Node::Directory {
                mode, held, depth, ..
            } => {
                if held.as_ref().is_some_and(|held| self.bring_back(held, place)) {
                    return;
                }
                place.create_directory().ok();
                for child in children(path, known) {
                    if let (Some(place), Some(node)) = (self.tripwire.place(child), known.get(child)) {
                        self.restore(&place, child, node, known);
                    }
                }
                place.set_directory_mode(*mode).ok();
                // No mount covers what was made just now.
                let depth = match depth {
                    Depth::Itself if !path.ends_with(".git") => Depth::Tree,
                    depth => *depth,
                };
                if let Some(made) = picture::look(place, depth, None, 0) {
                    self.put_back.insert(path.to_owned(), made);
                }
            }
        }
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
                .is_some_and(|(found, held)| (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino))
        };
        self.tripwire
            .place(below)
            .filter(is_it)
            .is_some_and(|found| found.rename_onto(place).is_ok())
    }

    fn quarantine(&mut self, place: &Place, path: &Path, kind: IncidentKind) {
        let kept = self.tripwire.quarantine(place, path);
        self.report(path, kind, kept);
    }

    fn report(&mut self, path: &Path, kind: IncidentKind, quarantined: Option<PathBuf>) {
        self.incidents.push(Incident {
            path: self.tripwire.scope.join(path),
            kind,
            quarantined,
        });
    }
}

/// What the picture has directly below a path.
fn children<'a>(path: &'a Path, known: &'a Picture) -> impl Iterator<Item = &'a PathBuf> {
    known
        .range(path.to_owned()..)
        .map(|(below, _)| below)
        .skip(1)
        .take_while(move |below| below.starts_with(path))
        .filter(move |below| below.parent() == Some(path))
}

/// One command that the tripwire waits for.
#[derive(Debug)]
#[must_use = "protected files are looked after when the command is gone"]
pub struct Armed {
    tripwire: Option<Arc<Tripwire>>,
}

impl Armed {
    /// Called after nothing of the command is left. Puts back what changed.
    pub async fn check(mut self) -> Vec<Incident> {
        let Some(tripwire) = self.tripwire.take() else {
            return Vec::new();
        };
        let looked = Arc::clone(&tripwire);
        tripwire
            .where_it_fits(move || looked.check())
            .await
            .unwrap_or_default()
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        for incident in self.tripwire.take().iter().flat_map(|tripwire| tripwire.check()) {
            tracing::warn!("{}", incident.sentence());
        }
    }
}

impl Incident {
    /// The sentence for the result.
    pub fn sentence(&self) -> String {
        let path = self.path.display();
        let kept = self.quarantined.as_ref().map_or_else(String::new, |place| {
            format!(" The command's version is kept at {}.", place.display())
        });
        let what = match self.kind {
            IncidentKind::Appeared => format!("the command created {path}; it was removed"),
            IncidentKind::Changed => format!("the command changed {path}; it was put back"),
            IncidentKind::Removed => format!("the command removed {path}; it was put back"),
            IncidentKind::Spoiled => {
                format!("the command changed {path}; it was moved away, and cannot be put back as it was")
            }
        };
        format!(
            "Protected file: {what}, because programs outside the sandbox act on it.{kept} \
             Start the server with --trust-workspace-config to allow this."
        )
    }
}

#[cfg(test)]
#[path = "tripwire_tests.rs"]
mod tests;
