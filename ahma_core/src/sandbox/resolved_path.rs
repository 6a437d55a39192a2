//! A path resolved link by link.
//!
//! A command that can change a link of a path decides where the path leads. So what is opened or protected is judged by
//! every link, not only by the two ends.

use std::{
    collections::VecDeque,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// The links, each by its real path, in the order they are followed.
    pub(super) links: Vec<PathBuf>,
    /// The path without links.
    pub(super) end: PathBuf,
}

impl ResolvedPath {
    /// Resolves an absolute path; none if nothing is there.
    pub(super) fn of(path: &Path) -> Option<Self> {
        // Most of the paths that are asked for do not exist, and one question is cheaper than one for each of their parts.
        path.symlink_metadata().ok()?;
        let mut resolved = Self {
            links: Vec::new(),
            end: PathBuf::new(),
        };
        let mut rest = parts(path);
        while let Some(part) = rest.pop_front() {
            match Path::new(&part).components().next() {
                Some(Component::ParentDir) => {
                    resolved.end.pop();
                    continue;
                }
                Some(Component::RootDir) => {
                    resolved.end = PathBuf::from("/");
                    continue;
                }
                _ => resolved.end.push(&part),
            }
            if let Ok(target) = std::fs::read_link(&resolved.end) {
                resolved.links.push(resolved.end.clone());
                if resolved.links.len() > MAX_LINKS {
                    return None;
                }
                resolved.end.pop();
                let mut next = parts(&target);
                next.append(&mut rest);
                rest = next;
            }
        }
        let is_there = resolved.links.is_empty() || resolved.end.symlink_metadata().is_ok();
        is_there.then_some(resolved)
    }

    /// A link in one of the directories is followed: a command that can write there decides where the path leads.
    pub(super) fn has_link_in(&self, directories: &[PathBuf]) -> bool {
        self.links
            .iter()
            .any(|link| directories.iter().any(|directory| link.starts_with(directory)))
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

#[cfg(test)]
#[path = "resolved_path_tests.rs"]
mod tests;
