//! The way to a path, link by link.
//!
//! Whoever can change a link on the way decides where it ends. So what is opened or protected is judged by every link,
//! not only by the two ends.

use std::{
    collections::VecDeque,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

/// More than the kernel follows.
const MOST_LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// The links, each by its real place, in the order they are followed.
    pub(super) links: Vec<PathBuf>,
    /// Where the way ends; without links.
    pub(super) end: PathBuf,
}

impl Way {
    /// Follows an absolute path; none if nothing is there.
    pub(super) fn to(path: &Path) -> Option<Self> {
        let mut way = Self {
            links: Vec::new(),
            end: PathBuf::new(),
        };
        let mut rest = parts(path);
        while let Some(part) = rest.pop_front() {
            match Path::new(&part).components().next() {
                Some(Component::ParentDir) => {
                    way.end.pop();
                    continue;
                }
                Some(Component::RootDir) => way.end = PathBuf::from("/"),
                _ => way.end.push(&part),
            }
            if let Ok(target) = std::fs::read_link(&way.end) {
                way.links.push(way.end.clone());
                if way.links.len() > MOST_LINKS {
                    return None;
                }
                way.end.pop();
                let mut next = parts(&target);
                next.append(&mut rest);
                rest = next;
            }
        }
        way.end.symlink_metadata().is_ok().then_some(way)
    }

    /// Whether a link in one of the directories is followed: whoever can write there decides where the way ends.
    pub(super) fn is_decided_in(&self, directories: &[PathBuf]) -> bool {
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
#[path = "way_tests.rs"]
mod tests;
