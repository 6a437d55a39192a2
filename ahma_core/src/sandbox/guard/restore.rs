//! Undoes one difference: moves the command's version to the quarantine and restores the baseline's.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::Mode;

use super::{
    baseline::{MAX_KEPT_BYTES, Node},
    changes::Difference,
    entry::{Entry, Stamp},
    report::{ChangeKind, ProtectedChange},
};
use crate::sandbox::{directory::DIRECTORY, held, regular_file::read_regular_file};

/// Bytes kept of a name in quarantine, so that it stays a possible one with what is put before it.
const MAX_NAME_BYTES: usize = 200;

/// The directories a restoration works with.
#[derive(Debug)]
pub(super) struct Restoration<'a> {
    pub(super) scope: &'a Path,
    pub(super) root: &'a Arc<OwnedFd>,
    pub(super) quarantine: &'a Path,
}

impl Restoration<'_> {
    pub(super) fn undo(&self, difference: &Difference<'_>) -> ProtectedChange {
        let mut quarantined = None;
        let undone = match Entry::below(self.root, &difference.path) {
            Err(_) => false,
            Ok(entry) => match (difference.kind, difference.before) {
                (ChangeKind::Unknown, _) => false,
                (_, Some(Node::Directory { stamp, .. })) if difference.mode_only => {
                    entry.set_directory_mode(stamp.mode).is_ok()
                }
                (ChangeKind::Removed, before) => before.is_some_and(|before| self.restore(&entry, before)),
                (ChangeKind::Created | ChangeKind::Changed, before) => {
                    quarantined = self.quarantine(&entry, &difference.path);
                    quarantined.is_some() && before.is_none_or(|before| self.restore(&entry, before))
                }
            },
        };
        ProtectedChange {
            path: self.scope.join(&difference.path),
            kind: difference.kind,
            undone,
            quarantined,
        }
    }

    /// Makes again what was at a name that is free now. Returns whether all of it is there.
    fn restore(&self, entry: &Entry, before: &Node) -> bool {
        match before {
            Node::File {
                stamp,
                content: Some(content),
            } => entry.create_file(content, stamp.mode).is_ok(),
            Node::Link { target } => entry.create_link(target).is_ok(),
            Node::Mounted { held, .. } => self.bring_back(held, entry) || copy(held, entry).is_some(),
            Node::Directory { stamp, entries, held } => {
                if held.as_ref().is_some_and(|held| self.bring_back(held, entry)) {
                    return true;
                }
                let Ok(made) = entry.create_directory() else {
                    return false;
                };
                let mut whole = true;
                for (name, node) in entries {
                    whole &= self.restore(&Entry::within(&made, name), node);
                }
                whole &= entry.set_directory_mode(stamp.mode).is_ok();
                // Of a container only the protected names are known.
                whole && held.is_none()
            }
            Node::File { content: None, .. } | Node::Other { .. } | Node::Unreadable => false,
        }
    }

    /// Moves what was moved away back to its name, if it is still in the scope.
    fn bring_back(&self, held: &OwnedFd, entry: &Entry) -> bool {
        let moved = || -> Option<()> {
            let path = held::path_of(held)?;
            let found = Entry::below(self.root, path.strip_prefix(self.scope).ok()?).ok()?;
            found.hold(Stamp::of(held).ok()?.id)?;
            found.rename_onto(entry).ok()
        };
        moved().is_some()
    }

    /// Moves an entry to the quarantine, or where that is on another file system, to a meaningless name in the scope.
    fn quarantine(&self, entry: &Entry, path: &Path) -> Option<PathBuf> {
        let mut name = OsString::from(format!("{:08x}-", rand::random::<u32>()));
        let own = path.file_name()?.as_bytes();
        name.push(OsStr::from_bytes(&own[..own.len().min(MAX_NAME_BYTES)]));
        let moved = || -> io::Result<PathBuf> {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(self.quarantine)?;
            fs::set_permissions(self.quarantine, fs::Permissions::from_mode(0o700))?;
            let quarantine = rustix::fs::open(self.quarantine, DIRECTORY, Mode::empty())?;
            entry.rename_to(quarantine, &name)?;
            Ok(self.quarantine.join(&name))
        };
        if let Ok(there) = moved() {
            return Some(there);
        }
        let mut here = OsString::from("ahma-quarantine-");
        here.push(&name);
        // An editor or a shell may act on the ending of a name.
        here.push(".kept");
        entry.rename_to(self.root, &here).ok()?;
        Some(self.scope.join(here))
    }
}

/// Restores a file that had a mount, and that a program outside has replaced, from the inode that is still held.
fn copy(held: &OwnedFd, entry: &Entry) -> Option<()> {
    let content = read_regular_file(&held::same_path(held), MAX_KEPT_BYTES).ok()?;
    entry.create_file(&content, Stamp::of(held).ok()?.mode).ok()
}
