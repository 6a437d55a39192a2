//! Spool files: where output goes that outgrows memory.
//!
//! Every engine has its own directory under the state directory and holds a lock in it as long as it lives. A directory
//! whose lock is free belonged to a server that died, and is removed by the next one that starts. Nothing else in the
//! state directory is ever touched.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::OperationId;

const RUN_PREFIX: &str = "run-";
const SPOOL_PREFIX: &str = "op_";
/// In each run directory: held by the server it belongs to. In the state directory: held while one is made or dead ones are looked for.
const LOCK_NAME: &str = ".lock";

/// How many readers may scan at once. Each may hold the longest line of its file in memory, and a core of ours.
const MAX_READERS: usize = 2;

/// The spool directory of one engine; made when first needed, removed with its last user.
#[derive(Debug)]
pub(super) struct Spool {
    state_dir: PathBuf,
    run_dir: OnceLock<RunDir>,
    readers: Semaphore,
}

#[derive(Debug)]
struct RunDir {
    path: PathBuf,
    /// Holding it open holds the lock.
    _lock: File,
}

/// One spool file; deleted when nobody can read it any more.
#[derive(Debug)]
pub(super) struct SpoolFile {
    path: PathBuf,
    spool: Arc<Spool>,
}

impl Spool {
    /// Removes what dead servers left behind. Does not touch the disk otherwise.
    pub(super) fn new(state_dir: PathBuf) -> Arc<Self> {
        match dead_runs(&state_dir) {
            Ok(dead) if dead.is_empty() => {}
            // There may be gigabytes of it, and nobody waits for that.
            Ok(dead) => drop(std::thread::spawn(|| drop(dead))),
            Err(error) => {
                tracing::warn!(path = %state_dir.display(), %error, "cannot remove output of earlier servers");
            }
        }
        Arc::new(Self {
            state_dir,
            run_dir: OnceLock::new(),
            readers: Semaphore::new(MAX_READERS),
        })
    }

    /// Makes the file for one operation, readable and writable by us alone.
    pub(super) fn create(self: &Arc<Self>, id: &OperationId) -> io::Result<(File, Arc<SpoolFile>)> {
        let path = self.run_dir()?.join(id.as_str());
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok((
            file,
            Arc::new(SpoolFile {
                path,
                spool: Arc::clone(self),
            }),
        ))
    }

    fn run_dir(&self) -> io::Result<&Path> {
        if let Some(run_dir) = self.run_dir.get() {
            return Ok(&run_dir.path);
        }
        let made = RunDir::create(&self.state_dir)?;
        // If another operation was faster, its directory is taken and ours is removed by its drop.
        Ok(&self.run_dir.get_or_init(|| made).path)
    }
}

impl RunDir {
    fn create(state_dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
        let _making = lock_state_dir(state_dir)?;
        let name = format!("{RUN_PREFIX}{}-{:08x}", std::process::id(), rand::random::<u32>());
        let path = state_dir.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = open_lock(&path.join(LOCK_NAME))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(error) = remove_run_dir(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the spool directory");
        }
    }
}

impl SpoolFile {
    /// Waits until another reader may scan. The semaphore is never closed, so there is always an answer.
    pub(super) async fn turn_to_read(&self) -> Option<SemaphorePermit<'_>> {
        self.spool.readers.acquire().await.ok()
    }

    pub(super) fn open(&self) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&self.path)
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a spool file");
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
    let _looking = lock_state_dir(state_dir)?;
    for entry in fs::read_dir(state_dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let ours = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
        if !ours
            || !entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(RUN_PREFIX.as_bytes())
        {
            continue;
        }
        let path = entry.path();
        // Without a lock it is none of ours, and with a lock that is held its server lives.
        let Ok(lock) = File::open(path.join(LOCK_NAME)) else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            dead.push(RunDir { path, _lock: lock });
        }
    }
    Ok(dead)
}

/// Removes what we put into a run directory, then the directory, which fails if anything else is in it. The lock goes
/// last: whoever is interrupted here leaves a directory that the next one finds.
fn remove_run_dir(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(SPOOL_PREFIX.as_bytes())
        {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(path.join(LOCK_NAME))?;
    fs::remove_dir(path)
}

/// Keeps one server from looking for dead ones while another makes its directory, which is not yet locked in the moment
/// after it is made. Held for that moment only.
fn lock_state_dir(state_dir: &Path) -> io::Result<File> {
    let lock = open_lock(&state_dir.join(LOCK_NAME))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;
