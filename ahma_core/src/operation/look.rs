//! What is there in the scope, looked at by the server itself.
//!
//! Only what is clear without leaving the scope is said: a link that leads out is followed by the command alone, behind
//! the wall, so that nobody can learn here what exists elsewhere.

use std::path::{Path, PathBuf};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::call::PlanSettings;

/// What a look at a path came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Something,
    Nothing,
    /// For the kernel to say to a command.
    Unclear,
}

/// What is wrong with the directory that a plan runs in, if that can be told.
pub async fn directory_problem(settings: &PlanSettings, directory: &Path) -> Option<String> {
    let below = settings
        .below_scope(directory)
        .filter(|below| !below.as_os_str().is_empty())?;
    let problem = match open_below(&settings.scope, below, OFlags::DIRECTORY).await? {
        Err(Errno::NOENT) => "does not exist",
        Err(Errno::NOTDIR) => "is not a directory",
        Ok(()) | Err(_) => return None,
    };
    Some(format!("`{}` {problem}", directory.display()))
}

/// Whether `path` exists. Below the scope it may have been made by a command; elsewhere the tool file's author named it.
pub(super) async fn find(scope: &Path, path: &Path) -> Found {
    let Ok(below) = path.strip_prefix(scope) else {
        return match tokio::fs::try_exists(path).await {
            Ok(true) => Found::Something,
            Ok(false) => Found::Nothing,
            Err(_) => Found::Unclear,
        };
    };
    if below.as_os_str().is_empty() {
        return Found::Something;
    }
    match open_below(scope, below, OFlags::empty()).await {
        Some(Ok(())) => Found::Something,
        Some(Err(Errno::NOENT | Errno::NOTDIR)) => Found::Nothing,
        Some(Err(_)) | None => Found::Unclear,
    }
}

/// Looks for `below` without following anything out of `scope`; nothing if the scope itself cannot be opened.
async fn open_below(scope: &Path, below: &Path, flags: OFlags) -> Option<Result<(), Errno>> {
    let (scope, below): (PathBuf, PathBuf) = (scope.into(), below.into());
    let look = move || {
        let path_only = OFlags::PATH | OFlags::CLOEXEC;
        let scope = rustix::fs::openat(CWD, &scope, path_only | OFlags::DIRECTORY, Mode::empty()).ok()?;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let found = rustix::fs::openat2(scope, &below, path_only | flags, Mode::empty(), beneath);
        Some(found.map(drop))
    };
    tokio::task::spawn_blocking(look).await.ok()?
}
