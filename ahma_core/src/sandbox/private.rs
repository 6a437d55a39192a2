//! The server's private directory: temporary files of commands, spools, overlays. Wiped at exit; what a killed server
//! left behind is wiped by the next one.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;

const PREFIX: &str = "ahma_mcp-";

/// Held for as long as the server lives. Dropping it removes the directory.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    /// Locked, so that another server can tell a living directory from a stale one.
    _lock: File,
}

impl PrivateDir {
    /// Makes a new directory, 0700, below `base`.
    pub fn create(base: &Path) -> io::Result<Self> {
        let base = base.canonicalize()?;
        remove_stale(&base);
        let name = format!(
            "{PREFIX}{}-{:016x}",
            rustix::process::getuid().as_raw(),
            rand::random::<u64>()
        );
        let path = base.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = lock(&path, OpenOptions::new().create_new(true))?;
        for part in ["tmp", "spool"] {
            fs::DirBuilder::new().mode(0o700).create(path.join(part))?;
        }
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where operations keep their output.
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

fn lock(directory: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.write(true).mode(0o600).open(directory.join("lock"))?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes directories of this user whose server is gone. Anything else with such a name is left alone.
fn remove_stale(base: &Path) {
    let own = rustix::process::getuid().as_raw();
    let prefix = format!("{PREFIX}{own}-");
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(&prefix)
            && entry
                .metadata()
                .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own);
        if is_ours && lock(&entry.path(), &mut OpenOptions::new()).is_ok() {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
