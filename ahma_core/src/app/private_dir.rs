//! The server's own directories: one for each run, private, and removed at its end.
//!
//! Each has a lock file that the server holds as long as it lives. So the next server can recognise the directory of a dead
//! one, end the processes that it left, and remove the directory.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;

use super::exit::Failure;
use crate::{jail, sandbox::removal};

/// The directory of this run. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked as long as we live.
    _lock: fs::File,
}

impl PrivateDir {
    /// Creates a directory under `temp` that no other user can enter, and removes those of dead servers.
    pub(crate) fn create(temp: &Path) -> Result<Self, Failure> {
        let unusable = |error: io::Error| {
            Failure::user(format!(
                "no private directory can be made under {}: {error}",
                temp.display()
            ))
            .with_hint("set TMPDIR to a directory that you can write to")
        };
        // Canonical, because the sandbox names paths as the kernel sees them.
        let temp = temp.canonicalize().map_err(unusable)?;
        let base = Self::create_base(&temp).map_err(unusable)?;
        remove_stale(&base);
        Self::create_in(&base).map_err(unusable)
    }

    /// Parent of the directories of this user's servers.
    pub(crate) fn base_in(temp: &Path) -> PathBuf {
        temp.join(format!("ahma_mcp-{}", rustix::process::getuid().as_raw()))
    }

    /// The same, made if need be; refused if it is not ours alone.
    pub(crate) fn create_base(temp: &Path) -> io::Result<PathBuf> {
        let base = Self::base_in(temp);
        match fs::DirBuilder::new().mode(0o700).create(&base) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        if Self::is_own(&base) {
            return Ok(base);
        }
        Err(io::Error::other(format!(
            "{} is not a directory that only we can enter",
            base.display()
        )))
    }

    /// True for a directory that this user owns and no other can access.
    pub(crate) fn is_own(directory: &Path) -> bool {
        fs::symlink_metadata(directory).is_ok_and(|found| {
            found.is_dir() && found.uid() == rustix::process::getuid().as_raw() && found.mode() & 0o077 == 0
        })
    }

    fn create_in(base: &Path) -> io::Result<Self> {
        let name = format!("{}-{:08x}", std::process::id(), rand::random::<u32>());
        let (path, lock_path) = (base.join(&name), base.join(format!("{name}.lock")));
        // Renamed once it is locked: a server that starts at this moment would take an unlocked one for a dead server's.
        let new_path = base.join(format!("{name}.new"));
        let lock = fs::File::create_new(&new_path)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&new_path, &lock_path)?;
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        fs::DirBuilder::new().mode(0o700).create(path.join("tmp"))?;
        Ok(Self {
            path,
            lock_path,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Parent of the directories of all runs of this user; no other user can enter it.
    pub(crate) fn base(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // The jail has done it, unless it was killed.
        jail::end_remains(&self.path);
        remove(&self.path, &self.lock_path);
    }
}

/// Removes a directory and then its lock file. If anything is left the lock file stays, for the next server to try.
fn remove(directory: &Path, lock_path: &Path) {
    if removal::remove_tree(directory).is_ok() {
        let _ = fs::remove_file(lock_path);
    }
}

fn remove_stale(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let lock_path = entry.path();
        if lock_path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        let Ok(lock) = fs::File::open(&lock_path) else {
            continue;
        };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let directory = lock_path.with_extension("");
            if jail::end_remains(&directory) {
                remove(&directory, &lock_path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_servers_directory_is_removed_and_a_living_ones_is_not() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let living = PrivateDir::create(temp.path()).expect("writable");
        let base = living.base().to_owned();
        fs::create_dir(base.join("1-dead")).expect("writable");
        fs::write(base.join("1-dead.lock"), "").expect("writable");

        let another = PrivateDir::create(temp.path()).expect("writable");
        assert!(living.path().join("tmp").is_dir());
        assert!(!base.join("1-dead").exists());
        let path = another.path().to_owned();
        drop(another);
        assert!(!path.exists());
        assert_eq!(
            fs::read_dir(&base).expect("readable").count(),
            2,
            "the living one and its lock"
        );
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().expect("a temporary directory");
        let base = temp
            .path()
            .join(format!("ahma_mcp-{}", rustix::process::getuid().as_raw()));
        fs::create_dir(&base).expect("writable");
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).expect("ours");
        assert!(PrivateDir::create(temp.path()).is_err());
    }
}
