//! Reading files that a command may have put where they are: never longer than asked for, and never waiting.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::fs::{FileType, Mode, OFlags};

/// What stands in a plain file. Anything else there is an error, as is a file of more than `most` bytes: a pipe would never
/// end, nor would `/dev/zero`, and what was looked at before it is opened may be another file by then.
pub(crate) fn read_plain(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    read_opened(rustix::fs::open(path, flags, Mode::empty())?, most)
}

/// The same of a file that is open, without waiting, already.
pub(crate) fn read_opened(file: OwnedFd, most: u64) -> io::Result<Vec<u8>> {
    let found = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let mut bytes = Vec::new();
    File::from(file).take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {most} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
