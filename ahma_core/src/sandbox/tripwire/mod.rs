//! The tripwire: files that programs outside the sandbox act on later must be after a command what they were before it.
//!
//! The full tier's read-only mounts cover what existed when the jail started, until somebody outside replaces it: the
//! kernel then drops the mount. The tripwire covers the rest: names that were missing or replaced, and in the core tier
//! everything protected. What appeared is moved to a quarantine directory, what changed is moved there and put back,
//! and the result says so in a sentence; also if that did not work, or if something could not be looked at. Nothing is
//! ever deleted, in the quarantine neither. While the command runs there is a window; closing it needs the full tier.
//!
//! It runs outside the sandbox, so it must never follow a link that a command made: see [`place`].

mod gitlinks;
mod incident;
mod index;
mod links;
mod picture;
mod place;
mod record;
mod repository;
mod round;
mod ways;
mod workspaces;

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use rustix::io::Errno;

use super::directory::KeptUsable;
use gitlinks::Gitlinks;
pub use incident::{Incident, IncidentKind};
use links::Links;
pub use picture::Depth;
use picture::{Node, Picture, Root};
use place::Place;
use record::{Company, Record};
use repository::Kind;
use round::Round;
use workspaces::Workspaces;

/// Of a name so much is kept in quarantine, so that it stays a possible one with what is put before it.
const LONGEST_NAME: usize = 200;

/// So many nodes are looked at faster than another thread is asked to do it.
const QUICK_NODES: usize = 64;

/// And so many bytes are read.
const QUICK_BYTES: usize = 128 * 1024;

/// Watches protected paths across the operations of one server.
#[derive(Debug)]
pub struct Tripwire {
    scope: PathBuf,
    /// `None` where there is no scope; then nothing is watched.
    root: Option<Root>,
    /// Paths below the scope, parents first.
    watched: Vec<(PathBuf, Depth)>,
    /// Below the scope, or the scope itself: those whose `commondir` is watched.
    git_directories: Vec<PathBuf>,
    quarantine: PathBuf,
    /// `None` where nothing can be written down; then other servers in the same scope are not heeded.
    record: Option<Record>,
    known: Mutex<Known>,
}

/// What is known to be good. Operations overlap, so the picture is taken when the first one starts.
#[derive(Debug, Default)]
struct Known {
    running: usize,
    picture: Picture,
    finds: Finds,
}

/// What no path can be watched for, because it may be anywhere.
#[derive(Debug, Default)]
struct Finds {
    links: Links,
    gitlinks: Gitlinks,
    workspaces: Workspaces,
}

impl Known {
    /// Whether looking again may hold up the thread that serves clients. Files come and go, so this is asked each time.
    fn is_quick(&self) -> bool {
        self.picture.len() + self.finds.links.len() <= QUICK_NODES
            && self.picture.values().map(Node::bytes_to_read).sum::<usize>() <= QUICK_BYTES
            && self.finds.gitlinks.bytes_to_read() <= QUICK_BYTES
    }
}

impl Tripwire {
    /// `watched` are absolute paths in `scope`; others are left out. Fails if `scope` is not the real directory it was, or
    /// cannot be opened.
    pub fn new(scope: &Path, watched: Vec<(PathBuf, Depth)>, quarantine: PathBuf) -> io::Result<Self> {
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
        let root = match place::open_root(scope) {
            Ok(root) => Some(Root::new(root)),
            Err(error) if is_missing(&error) => None,
            // It is there, and what lies in it could not be watched.
            Err(error) => return Err(error),
        };
        let is_needed = !relative.is_empty();
        let git_directories = relative
            .iter()
            .filter(|(path, _)| path.ends_with("commondir"))
            .filter_map(|(path, _)| Some(path.parent()?.to_owned()))
            .collect();
        let records = quarantine.with_file_name("pictures");
        let tripwire = Self {
            scope: scope.to_owned(),
            record: root
                .as_ref()
                .filter(|_| is_needed)
                .and_then(|root| Record::open(&records, &root.directory).ok()),
            root,
            watched: relative,
            git_directories,
            quarantine,
            known: Mutex::default(),
        };
        let now = tripwire.picture(&Picture::new());
        tripwire.lock().picture = now;
        let finds = tripwire.finds(&Finds::default());
        tripwire.lock().finds = finds;
        Ok(tripwire)
    }

    /// What the user should know about the files that are watched.
    pub fn warning(&self) -> Option<String> {
        let known = self.lock();
        let irreplaceable = known
            .picture
            .values()
            .filter(|node| node.is_irreplaceable())
            .count();
        (irreplaceable > 0).then(|| {
            format!(
                "{irreplaceable} protected files in {} are too large to be kept: a command that changes one is \
                 found out, but the file cannot be put back",
                self.scope.display()
            )
        })
    }

    /// Called before a command starts.
    pub async fn arm(tripwires: &[Arc<Self>]) -> Armed {
        let mut all = Armed::default();
        for tripwire in tripwires {
            let armed = Arc::clone(tripwire);
            if tripwire.note_at_once() {
                all.tripwires.push(armed);
                continue;
            }
            let armed = tokio::task::spawn_blocking(move || {
                armed.note();
                // Made here: whoever asks may be gone by now, and what is noted must be checked once.
                Armed {
                    tripwires: vec![armed],
                }
            });
            if let Ok(mut armed) = armed.await {
                all.tripwires.append(&mut armed.tripwires);
            }
        }
        all
    }

    /// One more command; the first one needs a picture. Waits while another server takes one.
    fn note(&self) {
        let mut known = self.lock();
        if known.running == 0 {
            let company = self.record.as_ref().map(Record::begin);
            known.picture = self.good_picture(&known.picture, company);
            known.finds = self.finds(&known.finds);
        }
        known.running += 1;
    }

    /// The same, unless it takes long, or would have to wait: another server may stand still for as long as it likes.
    fn note_at_once(&self) -> bool {
        let Ok(mut known) = self.known.try_lock() else {
            return false;
        };
        if known.running == 0 {
            if !known.is_quick() {
                return false;
            }
            let company = match &self.record {
                Some(record) => match record.begin_at_once() {
                    Some(company) => Some(company),
                    None => return false,
                },
                None => None,
            };
            known.picture = self.good_picture(&known.picture, company);
            known.finds = self.finds(&known.finds);
        }
        known.running += 1;
        true
    }

    /// What is good now: what is there if nobody is at work, else what was there when somebody began.
    fn good_picture(&self, earlier: &Picture, company: Option<Company>) -> Picture {
        let (Some(root), Some(record)) = (&self.root, &self.record) else {
            return self.picture(earlier);
        };
        if company == Some(Company::Others) {
            let ours = self.picture(earlier);
            return match record.read(&root.directory) {
                Some(theirs) => theirs.with(ours, &self.watched),
                None => ours,
            };
        }
        let picture = self.picture(earlier);
        if let Err(error) = record.write(&self.watched, &picture) {
            tracing::warn!(%error, "other servers cannot be told what protected files are like");
        }
        record.share();
        picture
    }

    fn picture(&self, earlier: &Picture) -> Picture {
        let Some(root) = &self.root else {
            return Picture::new();
        };
        let _usable = KeptUsable::new(&root.directory);
        picture::take(root, &self.watched, earlier)
    }

    /// Looks for what may be anywhere, as far as it is near something that is watched.
    fn finds(&self, earlier: &Finds) -> Finds {
        let Some(root) = &self.root else {
            return Finds::default();
        };
        let _usable = KeptUsable::new(&root.directory);
        Finds {
            links: self.links(root, earlier),
            gitlinks: self.gitlinks(root, earlier),
            workspaces: self.workspaces(root, earlier),
        }
    }

    fn links(&self, root: &Root, earlier: &Finds) -> Links {
        Links::take(root, &self.git_directories, &earlier.links)
    }

    fn gitlinks(&self, root: &Root, earlier: &Finds) -> Gitlinks {
        match self.git_directories.iter().any(|git| git == Path::new(".git")) {
            true => Gitlinks::take(root, &earlier.gitlinks),
            false => Gitlinks::default(),
        }
    }

    fn workspaces(&self, root: &Root, earlier: &Finds) -> Workspaces {
        match self.watched.iter().any(|(path, _)| path == Path::new(".vscode")) {
            true => Workspaces::take(root, &earlier.workspaces),
            false => Workspaces::default(),
        }
    }

    fn check(&self) -> Vec<Incident> {
        self.check_against(self.lock())
    }

    /// The same, unless it takes long, or would have to wait.
    fn check_at_once(&self) -> Option<Vec<Incident>> {
        let known = self.known.try_lock().ok()?;
        known.is_quick().then(|| self.check_against(known))
    }

    fn check_against(&self, mut known: MutexGuard<'_, Known>) -> Vec<Incident> {
        known.running = known.running.saturating_sub(1);
        let Some(root) = &self.root else {
            return Vec::new();
        };
        // The command may have closed the scope itself behind what it planted.
        let _usable = KeptUsable::new(&root.directory);
        let mut round = Round::new(self, &root.directory, &known.picture);
        // Another command may be about to make it; then its own check sees it whole.
        let kind = match known.running {
            0 => Kind::Whole,
            _ => Kind::Unfinished,
        };
        let new_repository = round.has_new_repository(kind);
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
                round.look(path, *depth);
            }
        }
        let before = &known.finds;
        // First what takes a bounded time, whatever commands wrote.
        round.remove_workspaces(&before.workspaces, &self.workspaces(root, before));
        round.remove_links(&before.links, &self.links(root, before));
        round.remove_repositories(&before.gitlinks, &self.gitlinks(root, before));
        let (incidents, put_back) = round.end();
        known.picture.extend(put_back);
        if known.running == 0
            && let Some(record) = &self.record
        {
            record.end();
        }
        incidents
    }

    /// Moves what is at a place away: to the quarantine, or where that is on another file system, to a name in the scope
    /// that means nothing to anyone.
    fn quarantine(&self, place: &Place, path: &Path) -> Option<PathBuf> {
        let mut name = OsString::from(format!("{:08x}-", rand::random::<u32>()));
        let own = path.file_name()?.as_bytes();
        name.push(OsStr::from_bytes(&own[..own.len().min(LONGEST_NAME)]));
        let moved = || -> io::Result<PathBuf> {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.quarantine)?;
            fs::set_permissions(&self.quarantine, fs::Permissions::from_mode(0o700))?;
            place.rename_to(place::open(&self.quarantine)?, &name)?;
            Ok(self.quarantine.join(&name))
        };
        if let Ok(there) = moved() {
            return Some(there);
        }
        let mut here = OsString::from("ahma-quarantine-");
        here.push(&name);
        // The ending of a name means something to some.
        here.push(".kept");
        place.rename_to(&self.root.as_ref()?.directory, &here).ok()?;
        Some(self.scope.join(here))
    }

    /// The watched paths directly below another.
    fn watched_below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        let paths = self.watched.iter().map(|(watched, _)| watched);
        paths.filter(move |watched| watched.parent() == Some(path))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Whether an error on opening a scope means that there is none.
fn is_missing(error: &io::Error) -> bool {
    let absences = [Errno::NOENT, Errno::NOTDIR];
    Errno::from_io_error(error).is_some_and(|errno| absences.contains(&errno))
}

/// One command that tripwires wait for.
#[derive(Debug, Default)]
#[must_use = "protected files are looked after when the command is gone"]
pub struct Armed {
    /// Those that have not been checked.
    tripwires: Vec<Arc<Tripwire>>,
}

impl Armed {
    /// Called after nothing of the command is left. Puts back what changed.
    pub async fn check(mut self) -> Vec<Incident> {
        let mut incidents = Vec::new();
        while let Some(tripwire) = self.tripwires.pop() {
            let found = match tripwire.check_at_once() {
                Some(found) => found,
                None => tokio::task::spawn_blocking(move || tripwire.check())
                    .await
                    .unwrap_or_default(),
            };
            incidents.extend(found);
        }
        incidents
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        for incident in self.tripwires.iter().flat_map(|tripwire| tripwire.check()) {
            tracing::warn!("{}", incident.sentence());
        }
    }
}

#[cfg(test)]
#[path = "tripwire_tests.rs"]
mod tests;
