//! Removes what commands left in a private directory, whatever they did to be in the way: rights taken from directories,
//! nests deeper than descriptors last, links that lead elsewhere.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    io::Errno,
};

use super::{
    directory::{self, DIRECTORY},
    held,
};

/// Directories held open on the way down. What lies deeper is moved up first.
const MAX_DEPTH: usize = 64;

/// Removes a directory and everything in it. One that is not there is no error.
#[cfg_attr(
    not(any(test, feature = "mcp")),
    expect(dead_code, reason = "the program removes what dead servers left")
)]
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = held::PASSED | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
    match directory::open(&parent, name) {
        Ok(directory) => empty(&directory)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    Ok(rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
}

/// Removes everything in a directory. What cannot be removed does not keep the rest.
pub(crate) fn empty(directory: impl AsFd) -> io::Result<()> {
    // The one that was given may be open for nothing but this.
    let top = rustix::fs::openat(directory, ".", DIRECTORY, Mode::empty())?;
    loop {
        let mut removal = Removal { top: &top, raised: 0 };
        let outcome = removal.clear(&top, 0);
        if removal.raised == 0 || outcome.is_err() {
            return outcome;
        }
    }
}

struct Removal<'a> {
    top: &'a OwnedFd,
    /// Directories that were moved up, to be removed in the next round.
    raised: usize,
}

impl Removal<'_> {
    fn clear(&mut self, directory: &OwnedFd, depth: usize) -> io::Result<()> {
        directory::make_usable(directory)?;
        let mut outcome = Ok(());
        for name in directory::names(directory)? {
            let removed = match rustix::fs::unlinkat(directory, &name, AtFlags::empty()) {
                // The second is what macOS says of a directory.
                Err(Errno::ISDIR | Errno::PERM) => directory::open(directory, &name).and_then(|below| {
                    if depth < MAX_DEPTH {
                        self.clear(&below, depth + 1)?;
                        return Ok(rustix::fs::unlinkat(directory, &name, AtFlags::REMOVEDIR)?);
                    }
                    directory::make_usable(&below)?;
                    let raised = format!("raised-{:016x}", rand::random::<u64>());
                    rustix::fs::renameat(directory, &name, self.top, raised)?;
                    self.raised += 1;
                    Ok(())
                }),
                result => result.map_err(io::Error::from),
            };
            outcome = outcome.and(removed);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    #[test]
    fn neither_rights_nor_depth_nor_links_keep_anything() {
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        let tree = directory.path().join("tree");
        for (path, mode) in [
            ("closed/inner", 0o000),
            ("listed/inner", 0o555),
            ("blind/inner", 0o311),
        ] {
            fs::create_dir_all(tree.join(path)).unwrap();
            fs::write(tree.join(path).join("file"), "").unwrap();
            let top = tree.join(path.split_once('/').unwrap().0);
            for place in [tree.join(path), top] {
                fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        symlink(&outside, tree.join("link")).unwrap();
        symlink(directory.path(), tree.join("up")).unwrap();
        // Longer than any path and deeper than there are descriptors: made from inside.
        let mut deepest = rustix::fs::open(&tree, DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..1200 {
            rustix::fs::mkdirat(&deepest, "deep", Mode::RWXU).unwrap();
            deepest = rustix::fs::openat(&deepest, "deep", DIRECTORY, Mode::empty()).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
        remove_tree(&tree).unwrap();
    }
}
