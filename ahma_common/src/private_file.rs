//! Files that only their owner can read, replaced in one step: a reader sees the old text or the new one, never half of it.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Replaces `path`, or creates it, with mode 0600. A symbolic link at `path` is replaced, not followed.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut draft = Draft::create(path)?;
    draft.file.write_all(contents)?;
    draft.file.sync_all()?;
    std::fs::rename(&draft.path, path)
}

/// Waits for the exclusive lock on the directory of `path`: a file that is read and then replaced could otherwise lose the
/// edit of another process. Held until dropped.
pub fn lock_for_edit(path: &Path) -> io::Result<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let lock = File::open(directory.unwrap_or(Path::new(".")))?;
    lock.lock()?;
    Ok(lock)
}

/// Fails where [`replace`] would fail to create its draft; leaves nothing.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    Draft::create(path).map(drop)
}

/// A new file in the directory of its target. Dropping it removes it, unless it has been renamed.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    fn create(target: &Path) -> io::Result<Self> {
        let mut name: OsString = target.into();
        name.push(format!(".{:016x}.new", rand::random::<u64>()));
        let path = PathBuf::from(name);
        // `create_new` follows no link and takes over no file.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_privately_and_without_leavings() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("tokens"), directory.path().join("other"));
        std::fs::write(&other, "untouched").unwrap();
        symlink(&other, &path).unwrap();
        for text in ["one", "two"] {
            check_replaceable(&path).unwrap();
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            assert!(metadata.is_file());
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "untouched");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let occupied = directory.path().join("directory");
        std::fs::create_dir(&occupied).unwrap();
        assert!(replace(&occupied, b"x").is_err());
        assert!(check_replaceable(&directory.path().join("missing/file")).is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
