//! The index of a git repository, as far as it tells which other repositories are in the tree.
//!
//! Commands write it, so every number in it is checked before it is used.

use std::collections::BTreeSet;

/// What an index lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// Paths of repositories.
    pub(super) links: BTreeSet<Vec<u8>>,
    /// Files beside it that hold more of it.
    pub(super) shared: BTreeSet<String>,
}

/// The lengths of object names: SHA-1 and SHA-256.
const NAME_LENGTHS: [usize; 2] = [20, 32];

/// The mode of an entry that is a repository.
const GITLINK: u32 = 0o160_000;

/// What stands before an entry's object name; the mode is in it.
const BEFORE_NAME: usize = 40;
const MODE_AT: usize = 24;

/// More flags follow.
const EXTENDED: u16 = 0x4000;

/// Reads an index; `None` if it is none. It does not say how long its object names are, so it is read both ways, and
/// one that could be read both ways lists what it does in either.
pub(super) fn read(content: &[u8]) -> Option<Index> {
    let readings = NAME_LENGTHS
        .iter()
        .filter_map(|length| Reading::of(content, *length));
    readings.reduce(|mut all, other| {
        all.links.extend(other.links);
        all.shared.extend(other.shared);
        all
    })
}

/// What is left to read.
struct Reading<'a> {
    rest: &'a [u8],
    name_length: usize,
}

impl<'a> Reading<'a> {
    fn of(content: &'a [u8], name_length: usize) -> Option<Index> {
        // At the end there is a checksum.
        let (rest, _) = content.split_at_checked(content.len().checked_sub(name_length)?)?;
        let mut reading = Self { rest, name_length };
        if reading.take(4)? != b"DIRC" {
            return None;
        }
        let version = reading.number()?;
        let count = reading.number()?;
        if !(2..=4).contains(&version) {
            return None;
        }
        let mut index = Index::default();
        let mut path = Vec::new();
        for _ in 0..count {
            let mode = reading.entry(version, &mut path)?;
            if mode == GITLINK {
                index.links.insert(path.clone());
            }
        }
        while !reading.rest.is_empty() {
            index.shared.extend(reading.extension()?);
        }
        Some(index)
    }

    /// Reads an entry: returns its mode, and makes its path of the one before.
    fn entry(&mut self, version: u32, path: &mut Vec<u8>) -> Option<u32> {
        let before = self.rest.len();
        let facts = self.take(BEFORE_NAME)?;
        let mode = u32::from_be_bytes(facts[MODE_AT..MODE_AT + 4].try_into().ok()?);
        self.take(self.name_length)?;
        let flags = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
        if flags & EXTENDED != 0 {
            self.take(2)?;
        }
        // The newest version says how much of the end of the last path is dropped, and what comes instead.
        let kept = match version {
            4 => path.len().checked_sub(self.offset()?)?,
            _ => 0,
        };
        path.truncate(kept);
        let length = self.rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(self.take(length)?);
        // The older ones fill up to eight bytes, with one at least.
        let padding = match version {
            4 => 1,
            _ => 8 - (before - self.rest.len()) % 8,
        };
        self.take(padding)?;
        Some(mode)
    }

    /// Reads an extension: returns the name of the file that it says is shared.
    fn extension(&mut self) -> Option<Option<String>> {
        let signature = self.take(4)?;
        let length = usize::try_from(self.number()?).ok()?;
        let content = self.take(length)?;
        if signature != b"link" {
            return Some(None);
        }
        let name = content.get(..self.name_length)?;
        let is_none = name.iter().all(|byte| *byte == 0);
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        Some((!is_none).then(|| format!("sharedindex.{name}")))
    }

    /// A number of as many bytes as it takes, seven bits in each.
    fn offset(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        loop {
            let [byte] = *self.take(1)? else { return None };
            number = number.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
            if byte & 128 == 0 {
                return Some(number);
            }
            number = number.checked_add(1)?;
        }
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path, process::Command};

    use super::read;

    fn git(directory: &Path, arguments: &[&str]) {
        let done = Command::new("git")
            .current_dir(directory)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }

    #[test]
    fn links_are_found_in_every_version() {
        for format in ["sha1", "sha256"] {
            for version in ["2", "4"] {
                let directory = tempfile::tempdir().unwrap();
                let top = directory.path();
                git(top, &["init", "-q", "--object-format", format]);
                for name in ["a", "lib-other", "lib.txt", "z/deep/file"] {
                    let file = top.join(name);
                    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                    std::fs::write(file, name).unwrap();
                }
                git(top, &["add", "."]);
                // Makes it version 3.
                git(top, &["add", "-N", "a"]);
                let commit = "1".repeat(if format == "sha1" { 40 } else { 64 });
                for path in ["lib", "z/deep/lib"] {
                    let entry = format!("160000,{commit},{path}");
                    git(top, &["update-index", "--add", "--cacheinfo", &entry]);
                }
                git(top, &["update-index", "--index-version", version]);
                let content = std::fs::read(top.join(".git/index")).unwrap();
                let index = read(&content).unwrap();
                let expected = BTreeSet::from([b"lib".to_vec(), b"z/deep/lib".to_vec()]);
                assert_eq!(index.links, expected, "{format} {version}");
                assert!(index.shared.is_empty());

                git(top, &["update-index", "--split-index"]);
                let content = std::fs::read(top.join(".git/index")).unwrap();
                let shared = read(&content).unwrap().shared;
                let [name] = shared.iter().collect::<Vec<_>>()[..] else {
                    panic!("{shared:?}")
                };
                let content = std::fs::read(top.join(".git").join(name)).unwrap();
                assert_eq!(read(&content).unwrap().links, expected, "{format} {version}");
            }
        }
    }

    #[test]
    fn what_is_no_index_is_refused() {
        assert_eq!(read(b""), None);
        assert_eq!(read(&[0; 100]), None);
        let mut cut = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        cut.extend([0; 60]);
        assert_eq!(read(&cut), None);
    }
}
