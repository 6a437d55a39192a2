//! The directory of the history, and the lock by which a server shows that it lives.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::fs::{FlockOperation, flock};

use crate::operation::{COMPRESSED_EXTENSION, OperationId};

const DATABASE: &str = "history.db";
const SERVERS: &str = "servers";
const OUTPUT: &str = "output";
const HOUSEKEEPING: &str = "housekeeping";
const LOCK_EXTENSION: &str = "lock";

/// Paths of the history.
#[derive(Debug, Clone)]
pub(super) struct HistoryDir {
    root: PathBuf,
}

/// Held by a server as long as it lives.
#[derive(Debug)]
pub(super) struct ServerLock {
    path: PathBuf,
    file: File,
}

impl ServerLock {
    /// Records the time for a reader after the server's death.
    pub(super) fn give_sign_of_life(&self) {
        // Without it, the last row counts as the end of its operations.
        let _ = self.file.set_modified(SystemTime::now());
    }

    pub(super) fn is_in_place(&self) -> bool {
        self.path.exists()
    }

    /// Simulates the death of the server: the file stays.
    #[cfg(test)]
    pub(super) fn die(self) {
        let name = self.path.with_extension("kept");
        fs::rename(&self.path, &name).unwrap();
        let path = self.path.clone();
        drop(self);
        fs::rename(name, path).unwrap();
    }
}

impl HistoryDir {
    /// The history below a state directory.
    pub(super) fn below(state_dir: &Path) -> Self {
        Self {
            root: state_dir.join("history"),
        }
    }

    pub(super) fn create(&self) -> io::Result<()> {
        for directory in [self.root.clone(), self.servers(), self.root.join(OUTPUT)] {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        Ok(())
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn database(&self) -> PathBuf {
        self.root.join(DATABASE)
    }

    fn servers(&self) -> PathBuf {
        self.root.join(SERVERS)
    }

    fn lock_path(&self, server: &str) -> PathBuf {
        self.servers().join(server).with_extension(LOCK_EXTENSION)
    }

    /// Records that housekeeping was done.
    pub(super) fn note_housekeeping(&self) {
        // Without the file it is done once more than needed.
        let _ = fs::write(self.root.join(HOUSEKEEPING), "");
    }

    /// Time since the last housekeeping; none if there was none.
    pub(super) fn last_housekeeping(&self) -> Option<Duration> {
        let noted = fs::metadata(self.root.join(HOUSEKEEPING)).and_then(|file| file.modified());
        noted.ok()?.elapsed().ok()
    }

    /// Directory of the outputs of one server.
    pub(super) fn output_of(&self, server: &str) -> PathBuf {
        self.root.join(OUTPUT).join(server)
    }

    pub(super) fn plain_output(&self, server: &str, id: &OperationId) -> PathBuf {
        self.output_of(server).join(id.as_str())
    }

    pub(super) fn compressed_output(&self, server: &str, id: &OperationId) -> PathBuf {
        self.plain_output(server, id).with_extension(COMPRESSED_EXTENSION)
    }

    /// Servers that have a directory of outputs.
    pub(super) fn servers_with_output(&self) -> Vec<String> {
        names_in(&self.root.join(OUTPUT))
    }

    /// Takes the lock of a new server.
    pub(super) fn lock(&self, server: &str) -> io::Result<ServerLock> {
        let path = self.lock_path(server);
        // Renamed once it is held: another server would take an unlocked one for a dead server's.
        let new_path = path.with_extension("new");
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new_path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&new_path, &path)?;
        Ok(ServerLock { path, file })
    }

    /// True unless it is certain that the server is dead.
    pub(super) fn is_alive(&self, server: &str) -> bool {
        match File::open(self.lock_path(server)) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// The last time at which a server showed that it lives; none if nothing is left of it.
    pub(super) fn last_sign_of_life(&self, server: &str) -> Option<SystemTime> {
        fs::metadata(self.lock_path(server)).ok()?.modified().ok()
    }

    /// Removes the locks of dead servers.
    pub(super) fn remove_dead_locks(&self) {
        for name in names_in(&self.servers()) {
            let Some(server) = name.strip_suffix(".lock") else {
                continue;
            };
            if !self.is_alive(server) {
                let _ = fs::remove_file(self.lock_path(server));
            }
        }
    }
}

impl Drop for ServerLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Names in a directory, none if it cannot be read.
pub(super) fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
