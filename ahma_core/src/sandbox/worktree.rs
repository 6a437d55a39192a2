//! The directories outside the scope that a linked git worktree needs. The only files of git that are read.

use std::path::{Path, PathBuf};

use super::{Access, regular_file::read_regular_file};

/// Longer than any path.
const MAX_POINTER_BYTES: u64 = 1 << 14;

/// A scope that is a linked worktree.
#[derive(Debug)]
pub(super) struct LinkedWorktree {
    /// Its administrative directory.
    pub(super) own: PathBuf,
    /// The repository's.
    common: PathBuf,
}

impl LinkedWorktree {
    /// Follows `.git` in the scope, if what it names points back.
    pub(super) fn of(scope: &Path) -> Option<Self> {
        let link = scope.join(".git");
        // Both paths may be relative, each to where it is written.
        let own = scope
            .join(pointer(&link)?.strip_prefix("gitdir:")?.trim())
            .canonicalize()
            .ok()?;
        // Without the pointer back, a planted `.git` file could open any directory.
        let back = own
            .join(pointer(&own.join("gitdir"))?.trim())
            .canonicalize()
            .ok()?;
        let common = own.parent()?.parent()?.to_owned();
        (back == link && own.parent()?.ends_with("worktrees")).then_some(Self { own, common })
    }

    /// The parts that git writes, and those it reads.
    pub(super) fn parts(&self) -> Vec<(PathBuf, Access)> {
        let Self { own, common } = self;
        let written =
            ["objects", "refs", "logs", "packed-refs"].map(|name| (common.join(name), Access::Write));
        let read =
            ["config", "hooks", "info", "HEAD", "shallow"].map(|name| (common.join(name), Access::Read));
        let mut parts = vec![(own.clone(), Access::Write)];
        parts.extend(written.into_iter().chain(read));
        // A git directory made up by a command could have links in it that lead anywhere.
        parts.retain(|(path, _)| path.canonicalize().is_ok_and(|real| real == *path));
        parts
    }
}

fn pointer(file: &Path) -> Option<String> {
    String::from_utf8(read_regular_file(file, MAX_POINTER_BYTES).ok()?).ok()
}
