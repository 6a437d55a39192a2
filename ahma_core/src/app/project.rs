//! The project around a directory, its files and the programs for it.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::settings::TOOLS_DIR;
use crate::sandbox::regular_file::read_regular_file;

/// The project that a directory seems to be a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnclosingProject {
    pub(crate) path: PathBuf,
    /// It has tool files; otherwise it is known by its repository only.
    pub(crate) is_set_up: bool,
}

impl EnclosingProject {
    pub(super) fn advice(&self) -> String {
        format!(
            "run this in {}, which contains this directory",
            self.path.display()
        )
    }
}

/// None if the directory is a project by itself. A home directory is no project, and neither is any directory above it.
pub(crate) fn enclosing(directory: &Path, home: Option<&Path>) -> Option<EnclosingProject> {
    let is_set_up = |path: &Path| path.join(TOOLS_DIR).is_dir();
    let is_project = |path: &Path| is_set_up(path) || path.join(".git").exists();
    let is_home = |path: &Path| home == Some(path);
    if is_project(directory) || is_home(directory) {
        return None;
    }
    let above = directory.ancestors().skip(1).take_while(|path| !is_home(path));
    above
        .filter(|path| path.parent().is_some())
        .find(|path| is_project(path))
        .map(|path| EnclosingProject {
            path: path.to_owned(),
            is_set_up: is_set_up(path),
        })
}

/// The first executable of that name in a directory of PATH.
pub(super) fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| {
            candidate.is_file() && rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

/// The text of a file in the project. Only a regular file is read, since commands can create others.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    /// More than settings and tool files have.
    const MAX_BYTES: u64 = 16 << 20;
    String::from_utf8(read_regular_file(path, MAX_BYTES)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_is_part_of_the_nearest_project_above_it_but_no_home_is_one() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let at = |path: &str| root.path().join(path);
        for path in ["home/p/src/deep", "home/p/own/.git", "home/.git", "home/q/lib"] {
            fs::create_dir_all(at(path)).expect("writable");
        }
        let home = at("home");
        let found = |path: &str| {
            let found = enclosing(&at(path), Some(&home))?;
            Some((found.path, found.is_set_up))
        };
        assert_eq!(found("home/p/src/deep"), None);
        fs::create_dir(at("home/p/.git")).expect("writable");
        assert_eq!(found("home/p/src/deep"), Some((at("home/p"), false)));
        fs::create_dir_all(at("home/p").join(TOOLS_DIR)).expect("writable");
        assert_eq!(found("home/p/src/deep"), Some((at("home/p"), true)));
        for whole in ["home/p", "home/p/own", "home/q/lib", "home"] {
            assert_eq!(found(whole), None, "{whole}");
        }
    }
}
