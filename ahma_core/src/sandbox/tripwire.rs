//! The tripwire: files that programs outside the sandbox act on later must be after a command what they were before it.
//!
//! The full tier's read-only mounts cover what existed when the jail started. The tripwire covers the rest: names that
//! were missing, and in the core tier everything protected. What appeared is moved to a quarantine directory, what
//! changed is moved there and put back, and the result says so in a sentence. Nothing is deleted. While the command
//! runs there is a window; closing it needs the full tier.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// Protected trees are small; a larger one is watched by its names only.
const MOST_ENTRIES: usize = 512;
const MOST_BYTES: u64 = 1024 * 1024;

/// Watches protected paths across the operations of one server.
#[derive(Debug)]
pub struct Tripwire {
    watched: Vec<PathBuf>,
    /// None of the watched paths existed at the start.
    only_names: bool,
    quarantine: PathBuf,
    /// What is known to be good. Operations overlap, so the picture is taken when the first one starts.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    running: usize,
    picture: BTreeMap<PathBuf, Node>,
}

/// One file, directory or link as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File {
        content: Option<Vec<u8>>,
        mode: u32,
        size: u64,
    },
    Directory {
        mode: u32,
        inode: u64,
    },
    Link {
        target: PathBuf,
    },
}

/// What the tripwire found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    pub path: PathBuf,
    pub kind: IncidentKind,
    /// Where the changed version lies now.
    pub quarantined: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncidentKind {
    Appeared,
    Changed,
    Removed,
}

impl Tripwire {
    /// `watched` are the protected paths that no mount covers.
    pub fn new(watched: Vec<PathBuf>, quarantine: PathBuf) -> Self {
        let only_names = watched.iter().all(|path| fs::symlink_metadata(path).is_err());
        Self {
            watched,
            only_names,
            quarantine,
            known: Mutex::default(),
        }
    }

    /// Called before a command starts.
    pub async fn arm(self: Arc<Self>) -> Armed {
        let tripwire = Arc::clone(&self);
        self.where_it_fits(move || tripwire.note()).await;
        Armed { tripwire: Some(self) }
    }

    /// Looking for names that are missing is a handful of `lstat` calls on what the kernel has in its cache, cheaper
    /// than handing them to another thread. Reading files is not.
    async fn where_it_fits<T: Send + 'static>(&self, look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.lock().picture.is_empty() && self.only_names {
            return Some(look());
        }
        tokio::task::spawn_blocking(look).await.ok()
    }

    fn note(&self) {
        let mut known = self.lock();
        if known.running == 0 {
            known.picture = picture(&self.watched);
        }
        known.running += 1;
    }

    fn check(&self) -> Vec<Incident> {
        let mut known = self.lock();
        known.running = known.running.saturating_sub(1);
        let now = picture(&self.watched);
        if now == known.picture {
            return Vec::new();
        }
        let mut incidents = Vec::new();
        // Parents come before children: quarantining a directory takes all of it along.
        for (path, node) in &now {
            let taken = incidents.iter().any(|incident: &Incident| {
                incident.kind == IncidentKind::Appeared && path.starts_with(&incident.path)
            });
            match known.picture.get(path) {
                _ if taken => {}
                Some(before) if before == node => {}
                Some(before) => {
                    let quarantined = self.quarantine(path);
                    restore(path, before).ok();
                    incidents.push(Incident {
                        path: path.clone(),
                        kind: IncidentKind::Changed,
                        quarantined,
                    });
                }
                None if is_harmless_repository(path) => {}
                None if path
                    .ancestors()
                    .any(|above| above.ends_with(".git") && is_harmless_repository(above)) => {}
                None => {
                    let quarantined = self.quarantine(path);
                    incidents.push(Incident {
                        path: path.clone(),
                        kind: IncidentKind::Appeared,
                        quarantined,
                    });
                }
            }
        }
        for (path, before) in &known.picture {
            if !now.contains_key(path) || fs::symlink_metadata(path).is_err() {
                restore(path, before).ok();
                if !now.contains_key(path) {
                    incidents.push(Incident {
                        path: path.clone(),
                        kind: IncidentKind::Removed,
                        quarantined: None,
                    });
                }
            }
        }
        known.picture = picture(&self.watched);
        incidents
    }

    /// Moves a path away, by copy where the quarantine is on another file system.
    fn quarantine(&self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let place = self
            .quarantine
            .join(format!("{:08x}-{name}", rand::random::<u32>()));
        fs::create_dir_all(&self.quarantine).ok()?;
        fs::set_permissions(&self.quarantine, fs::Permissions::from_mode(0o700)).ok()?;
        if fs::rename(path, &place).is_ok() {
            return Some(place);
        }
        copy(path, &place).ok()?;
        remove(path).ok()?;
        Some(place)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
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
        };
        format!(
            "Protected file: {what}, because programs outside the sandbox act on it.{kept} \
             Start the server with --trust-workspace-config to allow this."
        )
    }
}

fn picture(watched: &[PathBuf]) -> BTreeMap<PathBuf, Node> {
    let mut picture = BTreeMap::new();
    for path in watched {
        let mut budget = MOST_BYTES;
        add(path, &mut picture, &mut budget, !path.ends_with(".git"));
    }
    picture
}

/// `.git` itself is watched as a name; its dangerous parts are listed on their own.
fn add(path: &Path, picture: &mut BTreeMap<PathBuf, Node>, budget: &mut u64, descend: bool) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return;
    };
    if picture.len() >= MOST_ENTRIES || picture.contains_key(path) {
        return;
    }
    let mode = metadata.mode() & 0o7777;
    let node = if metadata.is_symlink() {
        Node::Link {
            target: fs::read_link(path).unwrap_or_default(),
        }
    } else if metadata.is_dir() {
        Node::Directory {
            mode,
            inode: if descend { 0 } else { metadata.ino() },
        }
    } else {
        let content = (metadata.is_file() && metadata.len() <= *budget)
            .then(|| fs::read(path).ok())
            .flatten();
        *budget = budget.saturating_sub(content.as_ref().map_or(0, |content| content.len() as u64));
        Node::File {
            content,
            mode,
            size: metadata.len(),
        }
    };
    let is_directory = matches!(node, Node::Directory { .. });
    picture.insert(path.to_owned(), node);
    if is_directory && descend {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            add(&entry.path(), picture, budget, true);
        }
    }
}

fn restore(path: &Path, node: &Node) -> io::Result<()> {
    match node {
        Node::File {
            content: Some(content),
            mode,
            ..
        } => {
            remove(path).ok();
            fs::write(path, content)?;
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))
        }
        Node::File { content: None, .. } => Ok(()),
        Node::Directory { mode, .. } => {
            if !path.is_dir() {
                remove(path).ok();
                fs::create_dir(path)?;
            }
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))
        }
        Node::Link { target } => {
            remove(path).ok();
            symlink(target, path)
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        symlink(fs::read_link(from)?, to)
    } else if metadata.is_dir() {
        fs::create_dir(to)?;
        fs::read_dir(from)?.try_for_each(|entry| {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))
        })
    } else {
        fs::copy(from, to).map(drop)
    }
}

/// Whether `path` is a git directory as `git init` or `git clone` makes it: no hook that runs, and a configuration that
/// makes git run nothing.
fn is_harmless_repository(path: &Path) -> bool {
    const HARMLESS_SECTIONS: &[&str] = &["branch", "init", "remote", "user"];
    const HARMLESS_CORE: &[&str] = &[
        "autocrlf",
        "bare",
        "filemode",
        "ignorecase",
        "logallrefupdates",
        "precomposeunicode",
        "repositoryformatversion",
        "symlinks",
    ];
    let is_plain_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    if !path.ends_with(".git") || !is_plain_directory {
        return false;
    }
    let hooks_sleep = fs::read_dir(path.join("hooks"))
        .into_iter()
        .flatten()
        .flatten()
        .all(|hook| {
            hook.file_name().to_string_lossy().ends_with(".sample")
                && hook.file_type().is_ok_and(|kind| kind.is_file())
        });
    let Ok(config) = fs::read_to_string(path.join("config")) else {
        return false;
    };
    let mut section = String::new();
    let config_sleeps = config.lines().map(str::trim).all(|line| {
        if let Some(header) = line.strip_prefix('[') {
            section = header
                .split([' ', ']', '.'])
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            // Something after the bracket would be a setting on the same line.
            return line.ends_with(']')
                && (section == "core" || HARMLESS_SECTIONS.contains(&section.as_str()));
        }
        let key = line
            .split('=')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let continues = line.ends_with('\\');
        let is_comment = line.is_empty() || line.starts_with(['#', ';']);
        !continues
            && (is_comment
                || (section == "core" && HARMLESS_CORE.contains(&key.as_str()))
                || (section == "remote"
                    && ["url", "fetch", "pushurl"].contains(&key.as_str())
                    && !line.contains("ext::"))
                || (section != "core"
                    && section != "remote"
                    && HARMLESS_SECTIONS.contains(&section.as_str())))
    });
    hooks_sleep && config_sleeps && !path.join("config.worktree").exists()
}

#[cfg(test)]
#[path = "tripwire_tests.rs"]
mod tests;
