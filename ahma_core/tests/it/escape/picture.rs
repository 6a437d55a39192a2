//! Pictures of files, two of which can be compared.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

pub(super) type Picture = BTreeMap<PathBuf, String>;

/// Adds everything at and below a path.
pub(super) fn describe(path: &Path, picture: &mut Picture) {
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    // The server keeps its own log and state there.
    if path.ends_with(".cache") || path.ends_with(".local") {
        return;
    }
    let mut attributes = [0_u8; 512];
    let length = rustix::fs::llistxattr(path, &mut attributes[..]).unwrap_or(0);
    let content = if found.is_file() {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    };
    // A home gets a directory for the log; its own time says nothing then.
    let time = if found.is_dir() {
        (0, 0)
    } else {
        (found.mtime(), found.mtime_nsec())
    };
    let text = format!(
        "{:o} {}:{} {} {time:?} {:?} {:?}",
        found.mode(),
        found.uid(),
        found.gid(),
        if found.is_dir() { 0 } else { found.nlink() },
        String::from_utf8_lossy(&content),
        &attributes[..length],
    );
    picture.insert(path.to_owned(), text);
    if found.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            describe(&entry.path(), picture);
        }
    }
}

/// The paths that are not the same in both.
pub(super) fn differences<'a>(before: &'a Picture, after: &'a Picture) -> Vec<&'a Path> {
    let changed = before
        .iter()
        .filter(|(path, state)| after.get(*path) != Some(state));
    let appeared = after.iter().filter(|(path, _)| !before.contains_key(*path));
    changed.chain(appeared).map(|(path, _)| path.as_path()).collect()
}
