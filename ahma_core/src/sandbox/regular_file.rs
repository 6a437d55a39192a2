//! Reading files that a command may have put where they are: never longer than asked for, and never waiting.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::fs::{FileType, Mode, OFlags};

/// Reads a regular file of at most `limit` bytes. Everything else is an error: a pipe would never end, nor would
/// `/dev/zero`, and what was checked before it is opened may be another file by then.
pub(crate) fn read_regular_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    read_opened_file(rustix::fs::open(path, flags, Mode::empty())?, limit)
}

/// Reads a file that has been opened with `O_NONBLOCK`.
pub(crate) fn read_opened_file(file: OwnedFd, limit: u64) -> io::Result<Vec<u8>> {
    let found = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    File::from(file).take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "regular_file_tests.rs"]
mod tests;
