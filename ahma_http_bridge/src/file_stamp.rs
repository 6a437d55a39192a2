//! Changes of files that are in use, as far as they show from outside.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Differs when a file was written, replaced, or given other permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: u64,
    changed: (i64, i64),
    bytes: u64,
}

impl FileStamp {
    /// `None` if there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            inode: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
            bytes: found.size(),
        })
    }
}
