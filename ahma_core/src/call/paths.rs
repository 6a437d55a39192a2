//! Paths in calls, judged by their text alone.
//!
//! This gives an early and clear answer; the sandbox does not rely on it. Links are not followed, because nothing here
//! touches the file system: the kernel refuses what slips through.

use std::path::{Component, Path, PathBuf};

use super::planner::PlanSettings;

/// Devices that every command may use.
const OPEN_DEVICES: [&str; 4] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// The directory that a call runs in.
pub(super) fn working_directory(settings: &PlanSettings, given: Option<&str>) -> Result<PathBuf, String> {
    let Some(given) = given else {
        return Ok(settings.scope.clone());
    };
    if let Some(objection) = objection(given) {
        return Err(objection);
    }
    let directory = resolve(&settings.scope, given);
    if settings.allows(&directory) {
        Ok(directory)
    } else {
        Err(outside(given, &directory, settings))
    }
}

/// Refuses a path that leads out of everything a command may read.
pub(super) fn check(settings: &PlanSettings, directory: &Path, given: &str) -> Result<(), String> {
    if let Some(objection) = objection(given) {
        return Err(objection);
    }
    let path = resolve(directory, given);
    if settings.opens(&path) || OPEN_DEVICES.iter().any(|device| path == Path::new(device)) {
        Ok(())
    } else {
        let refusal = outside(given, &path, settings);
        Err(format!("{refusal}, and no `--allow-read` opens it"))
    }
}

/// Objection to a path that means something else to a shell: taken literally it would name a directory called `~`.
pub(super) fn objection(given: &str) -> Option<String> {
    let is_of_home = given == "~" || given.starts_with("~/");
    is_of_home.then(|| format!("is `{given}`, and only a shell expands `~`: give the whole path"))
}

/// `given` against `base`, without `.` and `..`; it ends at the root however many `..` there are.
pub(super) fn resolve(base: &Path, given: &str) -> PathBuf {
    normalise(&base.join(given))
}

/// A path without `.` and `..`, by its text alone.
pub(crate) fn normalise(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
        }
    }
    plain
}

/// Message about a path outside of everything a command may reach.
pub(crate) fn outside(given: &str, resolved: &Path, settings: &PlanSettings) -> String {
    let scope = settings.scope.display();
    if Path::new(given) == resolved {
        format!("`{given}` is outside the sandbox scope `{scope}`")
    } else {
        format!(
            "`{given}` leads to `{}`, outside the sandbox scope `{scope}`",
            resolved.display()
        )
    }
}
