//! Checks of paths in the scope that the server itself makes before and between commands.
//!
//! Only what is clear without leaving the scope is said: a link that leads out is judged by its text, which any command
//! can read, and followed by the command alone, in the sandbox, so that no caller learns what exists elsewhere.

use std::{
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use crate::{
    call::{CallError, CommandPlan, PlanSettings, ToolCall, normalise, outside, plan, working_directory},
    catalog::Catalog,
    mtdf::ArgumentProblem,
    sandbox::held,
};

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// Result of looking for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    Present,
    Absent,
    /// Only the kernel can tell, when a command tries.
    Unknown,
}

/// Plans a call and looks at its directory: everything that is wrong with the call is reported at once.
pub async fn preflight(
    catalog: &Catalog,
    settings: &PlanSettings,
    call: ToolCall,
) -> Result<CommandPlan, CallError> {
    let directory = working_directory(catalog, settings, &call);
    let planned = plan(catalog, settings, call);
    let (tool, mut problems) = match &planned {
        Ok(plan) => (plan.tool.clone(), Vec::new()),
        Err(CallError::Invalid { tool, problems }) => (tool.clone(), problems.clone()),
        Err(CallError::UnknownTool { .. } | CallError::MissingStep { .. }) => return planned,
    };
    let problem = match &directory {
        Some(directory) => directory_problem(settings, directory).await,
        None => None,
    };
    match problem {
        None => planned,
        Some(problem) => {
            problems.push(ArgumentProblem::new("working_directory", problem));
            Err(CallError::Invalid { tool, problems })
        }
    }
}

/// The problem of a call's directory, if there is one that can be told.
async fn directory_problem(settings: &PlanSettings, directory: &Path) -> Option<String> {
    let below = settings
        .below_scope(directory)
        .filter(|below| !below.as_os_str().is_empty())?;
    let problem = match open_below(&settings.scope, below, OFlags::DIRECTORY).await? {
        Err(Errno::NOENT) => "does not exist",
        Err(Errno::NOTDIR) => "is not a directory",
        Err(Errno::XDEV) => {
            let (settings, below) = (settings.clone(), below.to_owned());
            let look = move || way_out(&settings, &below).map(|place| (settings, place));
            let (settings, place) = tokio::task::spawn_blocking(look).await.ok()??;
            return Some(outside(&directory.display().to_string(), &place, &settings));
        }
        Ok(()) | Err(_) => return None,
    };
    Some(format!("`{}` {problem}", directory.display()))
}

/// Looks for `path`. Below the scope it may have been made by a command; elsewhere the tool file's author named it.
pub(super) async fn existence(scope: &Path, path: &Path) -> Existence {
    let Ok(below) = path.strip_prefix(scope) else {
        return match tokio::fs::try_exists(path).await {
            Ok(true) => Existence::Present,
            Ok(false) => Existence::Absent,
            Err(_) => Existence::Unknown,
        };
    };
    if below.as_os_str().is_empty() {
        return Existence::Present;
    }
    match open_below(scope, below, OFlags::empty()).await {
        Some(Ok(())) => Existence::Present,
        Some(Err(Errno::NOENT | Errno::NOTDIR)) => Existence::Absent,
        Some(Err(_)) | None => Existence::Unknown,
    }
}

/// Looks for `below` without following anything out of `scope`; nothing if the scope itself cannot be opened.
async fn open_below(scope: &Path, below: &Path, flags: OFlags) -> Option<Result<(), Errno>> {
    let (scope, below): (PathBuf, PathBuf) = (scope.into(), below.into());
    let look = move || {
        let scope = open_scope(&scope)?;
        Some(held::open_beneath(&scope, &below, PATH_ONLY | flags).map(drop))
    };
    tokio::task::spawn_blocking(look).await.ok()?
}

/// The place outside everything commands may reach to which a link on the way to `below` leads. Only directories and
/// links of the scope are looked at.
fn way_out(settings: &PlanSettings, below: &Path) -> Option<PathBuf> {
    let mut place = settings.scope.join(below);
    for _ in 0..MAX_LINKS {
        let Some(below) = settings.below_scope(&place) else {
            return (!settings.allows(&place)).then_some(place);
        };
        place = after_first_link(&settings.scope, below)?;
    }
    None
}

/// The path to `below` with its first link replaced by the text of that link; nothing if there is none, or it is unclear.
fn after_first_link(scope: &Path, below: &Path) -> Option<PathBuf> {
    let mut directory = open_scope(scope)?;
    let mut parent = scope.to_owned();
    let mut rest = below.components();
    while let Some(component) = rest.next() {
        match rustix::fs::readlinkat(&directory, component.as_os_str(), Vec::new()) {
            Ok(target) => {
                let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                // The meaning of `..` after a name depends on whether that name is a link.
                let mut behind_names = target
                    .components()
                    .skip_while(|component| !matches!(component, Component::Normal(_)));
                if behind_names.any(|component| component == Component::ParentDir) {
                    return None;
                }
                return Some(normalise(&parent.join(target).join(rest.as_path())));
            }
            Err(Errno::INVAL) => {}
            Err(_) => return None,
        }
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        directory = rustix::fs::openat(&directory, component.as_os_str(), flags, Mode::empty()).ok()?;
        parent.push(component);
    }
    None
}

const PATH_ONLY: OFlags = held::PASSED.union(OFlags::CLOEXEC);

fn open_scope(scope: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(CWD, scope, PATH_ONLY | OFlags::DIRECTORY, Mode::empty()).ok()
}
