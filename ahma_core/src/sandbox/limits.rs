//! Resource limits of a command that every platform has.

use std::io;

use rustix::process::{Resource, Rlimit};

/// Many build tools open thousands of files; more than this is a leak.
const OPEN_FILES: u64 = 65_536;

/// Lowers what the calling process, and all that it starts, may use up. A limit that is lower already stays.
pub(crate) fn lower(max_file_bytes: u64) -> io::Result<()> {
    lower_to(Resource::Core, 0)?;
    lower_to(Resource::Fsize, max_file_bytes)?;
    lower_to(Resource::Nofile, OPEN_FILES)
}

pub(super) fn lower_to(resource: Resource, value: u64) -> io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let capped = |limit: Option<u64>| Some(limit.map_or(value, |limit| limit.min(value)));
    let maximum = capped(now.maximum);
    // A soft limit of open files below the hard one is a courtesy to select(2) users; keep it.
    let current = now.current.map_or(maximum, |current| Some(current.min(value)));
    Ok(rustix::process::setrlimit(resource, Rlimit { current, maximum })?)
}
