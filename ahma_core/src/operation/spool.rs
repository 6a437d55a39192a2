//! Spool files: they keep output that outgrows memory.
//!
//! If a history is kept, its directory of outputs is the place for them and they stay there. Otherwise they go with
//! their operations. Then every engine has its own directory under the state directory and holds a lock in it as long as it lives. A directory
//! whose lock is free belonged to a server that died, and is removed by the next one that starts. Nothing else in the
//! state directory is ever touched.
//!
//! No lock is waited for: the thread that makes a directory serves every client. One that is taken for dead in the
//! moment before its lock is held is given up for another, so each lock is looked at once more when it is held.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{
    OperationId,
    spool_file::{SpoolFile, SpoolPlace},
};

const RUN_PREFIX: &str = "run-";
const SPOOL_PREFIX: &str = "op_";
/// In each run directory: held by the server it belongs to.
const LOCK_NAME: &str = ".lock";

/// Number of directories tried. A server is taken for dead only by another that starts in just that moment.
const MAX_NAMES: usize = 8;

/// The spool directory of one engine; made when first needed.
#[derive(Debug)]
pub(super) enum Spool {
    /// Removed with its last user.
    Temporary {
        state_dir: PathBuf,
        run_dir: OnceLock<RunDir>,
    },
    /// Left to the history.
    Kept {
        directory: PathBuf,
        /// For what the history cannot keep: its disk is full, or it cannot be written.
        fallback: Arc<Self>,
    },
}

#[derive(Debug)]
pub(super) struct RunDir {
    path: PathBuf,
    /// Holding it open holds the lock.
    _lock: File,
}

impl Spool {
    /// Removes the files of dead servers. Does not touch the disk otherwise.
    pub(super) fn new(state_dir: PathBuf) -> Arc<Self> {
        match dead_runs(&state_dir) {
            Ok(dead) if dead.is_empty() => {}
            // There may be gigabytes of it, too much to wait for.
            Ok(dead) => drop(std::thread::spawn(|| drop(dead))),
            Err(error) => {
                tracing::warn!(path = %state_dir.display(), %error, "cannot remove output of earlier servers");
            }
        }
        Arc::new(Self::Temporary {
            state_dir,
            run_dir: OnceLock::new(),
        })
    }

    /// For files that stay, in a directory of this engine's own; in `state_dir` if they cannot be made there.
    pub(super) fn kept(directory: PathBuf, state_dir: PathBuf) -> Arc<Self> {
        let fallback = Self::new(state_dir);
        Arc::new(Self::Kept { directory, fallback })
    }

    /// Makes the file for one operation, readable and writable by us alone.
    pub(super) fn create(self: &Arc<Self>, id: &OperationId) -> io::Result<(File, Arc<SpoolFile>)> {
        match (self.create_here(id), &**self) {
            (Err(error), Self::Kept { fallback, .. }) => {
                tracing::warn!(operation = %id, %error, "the history cannot keep an output");
                fallback.create_here(id)
            }
            (created, _) => created,
        }
    }

    fn create_here(self: &Arc<Self>, id: &OperationId) -> io::Result<(File, Arc<SpoolFile>)> {
        let path = self.directory()?.join(id.as_str());
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let spool_file = match **self {
            Self::Temporary { .. } => SpoolFile::temporary(path, Arc::clone(self)),
            Self::Kept { .. } => SpoolFile::kept(SpoolPlace::Plain(path)),
        };
        Ok((file, Arc::new(spool_file)))
    }

    fn directory(&self) -> io::Result<&Path> {
        match self {
            Self::Temporary { state_dir, run_dir } => {
                if let Some(run_dir) = run_dir.get() {
                    return Ok(&run_dir.path);
                }
                let made = RunDir::create(state_dir)?;
                // If another operation was faster, its directory is taken and ours is removed by its drop.
                Ok(&run_dir.get_or_init(|| made).path)
            }
            Self::Kept { directory, .. } => {
                DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                Ok(directory)
            }
        }
    }
}

impl RunDir {
    fn create(state_dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
        for _ in 0..MAX_NAMES {
            let name = format!("{RUN_PREFIX}{}-{:08x}", std::process::id(), rand::random::<u32>());
            let path = state_dir.join(name);
            DirBuilder::new().mode(0o700).create(&path)?;
            let lock = match create_lock(&path.join(LOCK_NAME)) {
                // No other server removes a directory without a lock in it.
                Err(error) => {
                    let _ = fs::remove_dir(&path);
                    return Err(error);
                }
                Ok(lock) => lock,
            };
            if let Some(run_dir) = Self::hold(path, lock)? {
                return Ok(run_dir);
            }
        }
        Err(io::Error::other(
            "other servers removed each directory that was made",
        ))
    }

    /// Takes the lock of a directory; nothing if another has it, or had it and removed what it is for.
    fn hold(path: PathBuf, lock: File) -> io::Result<Option<Self>> {
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let is_there = is_at(&lock, &path.join(LOCK_NAME))?;
        Ok(is_there.then_some(Self { path, _lock: lock }))
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(error) = remove_run_dir(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the spool directory");
        }
    }
}

/// The run directories of servers that are dead, now ours to remove.
fn dead_runs(state_dir: &Path) -> io::Result<Vec<RunDir>> {
    let mut dead = Vec::new();
    match fs::symlink_metadata(state_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(dead),
        found => found?,
    };
    for entry in fs::read_dir(state_dir)? {
        let entry = entry?;
        if is_named(&entry, RUN_PREFIX) {
            dead.extend(dead_run(entry.path())?);
        }
    }
    Ok(dead)
}

/// A run directory, if it is ours and its server is dead. Another server may be removing it meanwhile.
fn dead_run(path: PathBuf) -> io::Result<Option<RunDir>> {
    let metadata = match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    // Without a lock it is none of ours, and with a lock that is held its server lives.
    match File::open(path.join(LOCK_NAME)) {
        Ok(lock) => RunDir::hold(path, lock),
        Err(_) => Ok(None),
    }
}

/// Removes what we put into a run directory, then the directory, which fails if anything else is in it. The lock goes
/// last: after an interruption the next server still finds the directory.
fn remove_run_dir(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if is_named(&entry, SPOOL_PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(path.join(LOCK_NAME))?;
    fs::remove_dir(path)
}

fn is_named(entry: &fs::DirEntry, prefix: &str) -> bool {
    entry
        .file_name()
        .as_encoded_bytes()
        .starts_with(prefix.as_bytes())
}

/// True if the open file is the one at `path` now.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn create_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;
