//! Resolves and checks the scope.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use super::{args::Args, exit::Failure, settings::Environment};

const CHOOSE: &str = "choose a project directory with --sandbox-scope";

/// The canonical scope. One that is too wide is refused unless the user named it, and the root always, because nothing would
/// be outside of it.
pub(super) fn resolve(
    args: &Args,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<PathBuf, Failure> {
    let named = args.sandbox_scope.as_deref();
    let directory = environment.working_directory.join(named.unwrap_or(Path::new("")));
    let scope = enterable(&directory)?;
    let home = environment
        .home
        .as_deref()
        .and_then(|home| std::fs::canonicalize(home).ok());
    let is_root = scope == Path::new("/");
    let too_wide = if is_root {
        "the whole file system"
    } else if home.as_deref() == Some(scope.as_path()) {
        "a whole home directory"
    } else {
        return Ok(scope);
    };
    // Nothing is run until a scope is known.
    if args.defer_sandbox && named.is_none() {
        return Ok(scope);
    }
    if named.is_none() {
        return Err(Failure::user(format!(
            "the current directory, {}, is {too_wide}",
            scope.display()
        ))
        .with_hint("start it in a project, or name the directory with --sandbox-scope"));
    }
    if is_root && !args.no_sandbox {
        return Err(Failure::user("the sandbox scope / would leave nothing outside it").with_hint(CHOOSE));
    }
    warnings.push(format!(
        "the sandbox scope {} is {too_wide}: commands can change all of it",
        scope.display()
    ));
    Ok(scope)
}

/// The canonical path of a directory that this user can enter; write access is not required.
fn enterable(directory: &Path) -> Result<PathBuf, Failure> {
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::user(format!(
            "the sandbox scope {} cannot be used: {why}",
            directory.display()
        ))
        .with_hint("give an existing directory that you can enter with --sandbox-scope")
    };
    let scope = std::fs::canonicalize(directory).map_err(|error| unusable(&error))?;
    if !scope.is_dir() {
        return Err(unusable(&"it is not a directory"));
    }
    if scope.to_str().is_none() {
        return Err(unusable(
            &"its path is not UTF-8, which clients and tool calls need",
        ));
    }
    rustix::fs::accessat(CWD, &scope, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|error| unusable(&std::io::Error::from(error)))?;
    Ok(scope)
}

/// The scope was replaced after it was checked.
pub(super) fn exchanged(judged: &Path, now: &Path) -> Failure {
    Failure::user(format!(
        "the sandbox scope {} was replaced by a link to {}",
        judged.display(),
        now.display()
    ))
    .with_hint("see who changes that directory, then start again")
}
