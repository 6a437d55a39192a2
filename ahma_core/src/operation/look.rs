//! Whether the directory that a plan runs in is there, before anything is started.
//!
//! Only what is clear without leaving the scope is said: a link that leads out is followed by the command alone, behind
//! the wall, so that nobody can learn here what exists elsewhere.

use std::path::{Path, PathBuf};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::call::PlanSettings;

/// What is wrong with the directory, if that can be told.
pub async fn directory_problem(settings: &PlanSettings, directory: &Path) -> Option<String> {
    let below = std::iter::once(&settings.scope)
        .chain(&settings.scope_aliases)
        .find_map(|root| directory.strip_prefix(root).ok())
        .filter(|below| !below.as_os_str().is_empty())?
        .to_owned();
    let scope = settings.scope.clone();
    let problem = tokio::task::spawn_blocking(move || look(&scope, below))
        .await
        .ok()??;
    Some(format!("`{}` {problem}", directory.display()))
}

fn look(scope: &Path, below: PathBuf) -> Option<&'static str> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let scope = rustix::fs::openat(CWD, scope, flags, Mode::empty()).ok()?;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(scope, below, flags, Mode::empty(), beneath) {
        Err(Errno::NOENT) => Some("does not exist"),
        Err(Errno::NOTDIR) => Some("is not a directory"),
        // Everything else is for the kernel to say to the command.
        Ok(_) | Err(_) => None,
    }
}
