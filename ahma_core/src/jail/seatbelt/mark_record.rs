//! The marks of running operations, written down in the private directory, so that the next server finds what is left where
//! the jail was killed with its supervisors.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::FlockOperation;

use super::{census::Membership, mark::Mark};

const DIRECTORY: &str = "marks";

/// Held by a jail and, through fork, its supervisors: as long as one of them lives, the rest is theirs to end.
const LOCK: &str = "lock";

/// A process that has not ended after this many rounds is stuck in the kernel.
const MAX_ROUNDS: u32 = 100;
const ROUND_INTERVAL: Duration = Duration::from_millis(10);

/// One file for each mark.
#[derive(Debug)]
pub(super) struct MarkRecord {
    directory: PathBuf,
    _lock: File,
}

impl MarkRecord {
    pub(super) fn open(private: &Path) -> io::Result<Self> {
        let directory = private.join(DIRECTORY);
        fs::create_dir_all(&directory)?;
        let lock = File::create(directory.join(LOCK))?;
        rustix::fs::flock(&lock, FlockOperation::LockShared)?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    pub(super) fn add(&self, mark: Mark) -> io::Result<()> {
        File::create(self.directory.join(mark.to_string())).map(drop)
    }

    pub(super) fn remove(&self, mark: Mark) {
        fs::remove_file(self.directory.join(mark.to_string())).ok();
    }
}

/// Ends what the operations of a dead server have left. False if others are still about it, or something does not end.
pub(crate) fn end_remains(private: &Path) -> bool {
    // The jail of the read-only shell has a directory within.
    let within = fs::read_dir(private).into_iter().flatten().flatten();
    let places = within.map(|entry| entry.path()).chain([private.to_owned()]);
    // One that does not end is no reason to spare the others.
    places.fold(true, |ended, place| end_recorded(&place.join(DIRECTORY)) & ended)
}

fn end_recorded(directory: &Path) -> bool {
    let Ok(lock) = File::open(directory.join(LOCK)) else {
        return true;
    };
    if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let marks = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    marks.fold(true, |ended, mark| ends(Membership::Mark(mark)) & ended)
}

fn ends(membership: Membership) -> bool {
    for _ in 0..MAX_ROUNDS {
        if membership.is_empty() {
            return true;
        }
        membership.kill();
        std::thread::sleep(ROUND_INTERVAL);
    }
    false
}
