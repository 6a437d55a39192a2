//! Finds the program of an availability check where commands find theirs, without running it.

use std::{
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::known_answers::CheckKey;
use crate::mtdf::AvailabilityCommand;

/// A file or directory as it is now. Another one in its place, or a change, gives another value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FileIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    /// Follows links.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let found = path.metadata()?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            path,
        })
    }

    pub(super) fn is_below(&self, directory: &Path) -> bool {
        self.path.starts_with(directory)
    }
}

/// The name of a program, and where commands look for it.
#[derive(Debug)]
pub(super) struct ProgramLookup {
    /// Without a slash.
    pub(super) program: String,
    /// In the order in which they are searched.
    pub(super) directories: Vec<PathBuf>,
    /// The `PATH` among them.
    pub(super) search_path: String,
}

impl ProgramLookup {
    pub(super) fn find(&self) -> Option<PathBuf> {
        first_executable(&self.directories, &self.program)
    }

    /// The key under which the answer of the program is shared, if it is.
    pub(super) fn key(
        &self,
        command: &AvailabilityCommand,
        program: &Path,
        scope: &Path,
    ) -> Option<CheckKey> {
        let own = self
            .directories
            .iter()
            .filter(|directory| directory.starts_with(scope));
        let own: Vec<PathBuf> = own.cloned().collect();
        CheckKey::of(command, program, scope, &self.search_path, &own)
    }
}

/// The first file of that name that can be executed.
pub(crate) fn first_executable(directories: &[PathBuf], program: &str) -> Option<PathBuf> {
    let mut files = directories.iter().map(|directory| directory.join(program));
    files.find(|file| {
        let found = file.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}
