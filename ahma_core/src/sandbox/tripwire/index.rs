//! The index of a git repository, as far as it tells which other repositories are in the tree.
//!
//! Commands write it, so every number in it is checked before it is used. Where git could read it otherwise than it is read
//! here it counts as none: git takes the length of a name from one place and its end from another, and where it reads with
//! several threads it begins at offsets that the file itself gives.

use std::collections::BTreeSet;

/// What an index lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// Paths of repositories.
    pub(super) links: BTreeSet<Vec<u8>>,
    /// Files beside it that hold more of it.
    pub(super) shared: BTreeSet<String>,
}

/// Which bits of an entry's mode tell its kind, and those of a repository and of a directory.
const KIND: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
const DIRECTORY: u32 = 0o040_000;

/// What stands before an entry's object name; the mode is in it.
const BEFORE_NAME: usize = 40;
const MODE_AT: usize = 24;

/// More flags follow.
const EXTENDED: u16 = 0x4000;

/// Of the flags, the length of the path; all bits are set for longer ones.
const PATH_LENGTH: u16 = 0x0fff;

/// The longest path that the kernel takes.
const LONGEST_PATH: usize = 4096;

/// More repositories are in no tree that commands work on.
const MOST_LINKS: usize = 4096;

/// Reads an index; `None` if it is none. It does not say how long its object names are: git knows that from the
/// configuration.
pub(super) fn read(content: &[u8], name_length: usize) -> Option<Index> {
    // At the end there is a checksum.
    let (content, _) = content.split_at_checked(content.len().checked_sub(name_length)?)?;
    let reading = Reading {
        content,
        rest: content,
        name_length,
    };
    reading.whole()
}

/// What is left to read.
struct Reading<'a> {
    content: &'a [u8],
    rest: &'a [u8],
    name_length: usize,
}

/// An entry, as far as it is of use.
struct Entry {
    mode: u32,
    /// Where it begins.
    offset: usize,
    /// Nothing of the path before it is in its own.
    is_fresh: bool,
}

impl<'a> Reading<'a> {
    fn whole(mut self) -> Option<Index> {
        if self.take(4)? != b"DIRC" {
            return None;
        }
        let version = self.number()?;
        let count = self.number()?;
        if !(2..=4).contains(&version) {
            return None;
        }
        let mut index = Index::default();
        let mut path = Vec::new();
        let mut entries = Vec::new();
        for _ in 0..count {
            let entry = self.entry(version, &mut path)?;
            match entry.mode & KIND {
                GITLINK if index.links.len() < MOST_LINKS => _ = index.links.insert(path.clone()),
                // What lies in a directory that is listed as one is not told here.
                GITLINK | DIRECTORY => return None,
                _ => {}
            }
            entries.push(entry);
        }
        index.shared = self.extensions(&entries)?;
        Some(index)
    }

    /// Reads an entry, and makes its path of the one before.
    fn entry(&mut self, version: u32, path: &mut Vec<u8>) -> Option<Entry> {
        let offset = self.offset();
        let facts = self.take(BEFORE_NAME)?;
        let mode = u32::from_be_bytes(facts[MODE_AT..MODE_AT + 4].try_into().ok()?);
        self.take(self.name_length)?;
        let flags = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
        if flags & EXTENDED != 0 {
            self.take(2)?;
        }
        // The newest version says how much of the end of the last path is dropped, and what comes instead.
        let kept = match version {
            4 => path.len().checked_sub(self.varying_number()?)?,
            _ => 0,
        };
        path.truncate(kept);
        let length = self.rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(self.take(length)?);
        let said = flags & PATH_LENGTH;
        if path.len() > LONGEST_PATH || said != PATH_LENGTH && usize::from(said) != path.len() {
            return None;
        }
        // The older ones fill up to eight bytes, with one at least.
        let padding = match version {
            4 => 1,
            _ => 8 - (self.offset() - offset) % 8,
        };
        self.take(padding)?;
        Some(Entry {
            mode,
            offset,
            is_fresh: kept == 0,
        })
    }

    /// Reads the extensions: returns the names of the files that they say are shared.
    fn extensions(&mut self, entries: &[Entry]) -> Option<BTreeSet<String>> {
        let mut shared = BTreeSet::new();
        let end_of_entries = self.offset();
        let mut last = None;
        while !self.rest.is_empty() {
            let offset = self.offset();
            let signature = self.take(4)?;
            let length = usize::try_from(self.number()?).ok()?;
            let content = self.take(length)?;
            match signature {
                b"link" => shared.extend(self.shared_file(content)?),
                b"IEOT" if !are_blocks_of(entries, content) => return None,
                // Directories that are listed as such may follow.
                b"sdir" => return None,
                _ => {}
            }
            last = Some((offset, signature, content));
        }
        // Where git looks for the end of the entries, without reading what comes before.
        let at = self.content.len().checked_sub(12 + self.name_length);
        let looks_like_it = at.is_some_and(|at| self.content[at..].starts_with(b"EOIE"));
        let is_it = || {
            let (offset, signature, content) = last?;
            let end = u32::from_be_bytes(content.get(..4)?.try_into().ok()?);
            (Some(offset) == at && signature == b"EOIE").then_some(usize::try_from(end).ok()?)
        };
        (!looks_like_it || is_it() == Some(end_of_entries)).then_some(shared)
    }

    /// The file that holds the other part, if there is one.
    fn shared_file(&self, content: &[u8]) -> Option<Option<String>> {
        let name = content.get(..self.name_length)?;
        let is_none = name.iter().all(|byte| *byte == 0);
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        Some((!is_none).then(|| format!("sharedindex.{name}")))
    }

    fn offset(&self) -> usize {
        self.content.len() - self.rest.len()
    }

    /// A number of as many bytes as it takes, seven bits in each.
    fn varying_number(&mut self) -> Option<usize> {
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

/// Whether a table of blocks, each with where it begins and how many entries it has, fits to the entries.
fn are_blocks_of(entries: &[Entry], table: &[u8]) -> bool {
    let numbers: Vec<usize> = table
        .chunks_exact(4)
        .map(|number| u32::from_be_bytes([number[0], number[1], number[2], number[3]]) as usize)
        .collect();
    let [1, blocks @ ..] = &numbers[..] else {
        return false;
    };
    let mut rest = entries;
    for block in blocks.chunks(2) {
        let [offset, count] = *block else { return false };
        let Some((first, (own, others))) = rest.first().zip(rest.split_at_checked(count)) else {
            return false;
        };
        if own.is_empty() || first.offset != offset || !first.is_fresh {
            return false;
        }
        rest = others;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::tests::git, Index};

    #[test]
    fn links_are_found_in_every_version() {
        for (format, name_length) in [("sha1", 20), ("sha256", 32)] {
            let read = |content: &[u8]| super::read(content, name_length);
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
                let rewritten = ["update-index", "--force-write-index", "--index-version", version];
                // With the offsets for several threads.
                git(top, &[&["-c", "index.threads=3"], &rewritten[..]].concat());
                let content = std::fs::read(top.join(".git/index")).unwrap();
                let expected = BTreeSet::from([b"lib".to_vec(), b"z/deep/lib".to_vec()]);
                assert_eq!(read(&content).unwrap().links, expected, "{format} {version}");
                for signature in [b"IEOT", b"EOIE"] {
                    let at = memchr::memmem::rfind(&content, signature).expect("it was asked for");
                    let offset = at + if signature == b"IEOT" { 12 } else { 8 };
                    let mut elsewhere = content.clone();
                    elsewhere[offset + 3] ^= 1;
                    assert_eq!(read(&elsewhere), None, "{format} {version} {signature:?}");
                }
                git(top, &rewritten);
                let content = std::fs::read(top.join(".git/index")).unwrap();
                let index = read(&content).unwrap();
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

    /// An index of version 2 with these entries: mode, length of the path as it is said, path.
    fn index(entries: &[(u32, u16, &[u8])], rest: &[u8]) -> Vec<u8> {
        let mut content = b"DIRC\0\0\0\x02".to_vec();
        content.extend((entries.len() as u32).to_be_bytes());
        for (mode, length, path) in entries {
            let mut entry = vec![0; 24];
            entry.extend(mode.to_be_bytes());
            entry.extend([0; 12 + 20]);
            entry.extend(length.to_be_bytes());
            entry.extend(*path);
            entry.resize(entry.len() / 8 * 8 + 8, 0);
            content.extend(entry);
        }
        content.extend(rest);
        content.extend([0; 20]);
        content
    }

    fn read(content: &[u8]) -> Option<Index> {
        super::read(content, 20)
    }

    #[test]
    fn what_git_takes_for_a_repository_is_one() {
        for mode in [0o160_000, 0o160_644, 0o360_000] {
            let found = read(&index(&[(mode, 3, b"lib")], b"")).unwrap();
            assert_eq!(found.links, BTreeSet::from([b"lib".to_vec()]), "{mode:o}");
        }
        assert!(
            read(&index(&[(0o100_644, 3, b"lib")], b""))
                .unwrap()
                .links
                .is_empty()
        );
    }

    #[test]
    fn what_git_could_read_otherwise_is_refused() {
        let file = 0o100_644;
        assert!(read(&index(&[(file, 1, b"a")], b"TREE\0\0\0\0")).is_some());
        // Git goes on behind the length, and finds other entries there.
        assert_eq!(read(&index(&[(file, 73, b"a")], b"")), None);
        // The trees of directories tell more.
        assert_eq!(read(&index(&[(0o040_000, 2, b"d/")], b"")), None);
        assert_eq!(read(&index(&[(file, 1, b"a")], b"sdir\0\0\0\0")), None);
        // Inside of another, where git finds it.
        let hidden = [b"ZZZZ\0\0\0\x20EOIE\0\0\0\x18\0\0\0\x0c".as_slice(), &[0; 20]].concat();
        assert_eq!(read(&index(&[(file, 1, b"a")], &hidden)), None);
        let long = vec![b'a'; 5000];
        assert_eq!(read(&index(&[(file, 0xfff, &long)], b"")), None);
        let many = vec![(0o160_000, 1, b"a".as_slice()); 5000];
        assert_eq!(read(&index(&many, b"")).unwrap().links.len(), 1);
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
