//! The process that made a notified call: its memory, its files and its descriptors.
//!
//! A path is copied out of its memory once and opened once; the process could change it meanwhile.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::fs::FileExt,
    },
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use super::notified_call::{Target, TimeUnit};

/// The longest path that the kernel takes.
const MAX_PATH_BYTES: usize = 4096;
const PAGE_BYTES: u64 = 4096;

/// A process, or one of its threads, that waits for the result of its call.
pub(super) struct Requester {
    pid: u32,
}

/// Access and modification time.
pub(super) type Times = [libc::timespec; 2];

impl Requester {
    pub(super) fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// Opens the file that a call acts on, without any access to its contents.
    pub(super) fn open(&self, target: Target) -> Result<OwnedFd, Errno> {
        match target {
            Target::Descriptor(number) => self.open_descriptor(number),
            Target::Path {
                directory,
                pointer,
                flags,
            } => self.open_path(directory, &self.read_text(pointer)?, flags),
        }
    }

    fn open_descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let Self { pid } = self;
        if number == libc::AT_FDCWD {
            return open_place(&format!("/proc/{pid}/cwd"));
        }
        open_place(&format!("/proc/{pid}/fd/{number}"))
            .map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error })
    }

    fn open_path(&self, directory: i32, path: &[u8], flags: i32) -> Result<OwnedFd, Errno> {
        if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            return self.open_descriptor(directory);
        }
        if let Some(number) = self.own_descriptor(path) {
            return self.open_descriptor(number);
        }
        let mut open_flags = OFlags::PATH | OFlags::CLOEXEC;
        open_flags.set(OFlags::NOFOLLOW, flags & libc::AT_SYMLINK_NOFOLLOW != 0);
        let open = |from: BorrowedFd<'_>| {
            let resolve = ResolveFlags::NO_MAGICLINKS;
            rustix::fs::openat2(from, path, open_flags, Mode::empty(), resolve)
        };
        if path.starts_with(b"/") {
            open(CWD)
        } else {
            open(self.open_descriptor(directory)?.as_fd())
        }
    }

    /// The number of a descriptor that a path names: looked up here, `self` would be this process.
    fn own_descriptor(&self, path: &[u8]) -> Option<i32> {
        let own = format!("/proc/{}/fd/", self.pid);
        let prefixes = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", &own];
        let number = prefixes
            .iter()
            .find_map(|prefix| path.strip_prefix(prefix.as_bytes()))?;
        std::str::from_utf8(number).ok()?.parse().ok()
    }

    /// Takes a copy of one of its descriptors.
    pub(super) fn take_descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        // The requester may be any thread of its process.
        let (pid, flags) = (self.pid as libc::pid_t, libc::PIDFD_THREAD);
        // SAFETY: takes numbers.
        let process = result_of(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) })?;
        // SAFETY: the descriptor is new and not owned elsewhere.
        let process = unsafe { OwnedFd::from_raw_fd(process as i32) };
        // SAFETY: takes numbers.
        let taken =
            result_of(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })?;
        // SAFETY: as above.
        Ok(unsafe { OwnedFd::from_raw_fd(taken as i32) })
    }

    /// Reads the times at `pointer`; `None`, which means now, if it is null.
    pub(super) fn read_times(&self, pointer: u64, unit: TimeUnit) -> Result<Option<Times>, Errno> {
        if pointer == 0 {
            return Ok(None);
        }
        let mut words = [0_i64; 4];
        let count = if unit == TimeUnit::Seconds { 2 } else { 4 };
        let memory = self.memory()?;
        for (index, word) in words.iter_mut().take(count).enumerate() {
            let mut bytes = [0; 8];
            let at = pointer.checked_add(8 * index as u64).ok_or(Errno::FAULT)?;
            memory.read_exact_at(&mut bytes, at).map_err(|_| Errno::FAULT)?;
            *word = i64::from_ne_bytes(bytes);
        }
        Ok(Some(times(words, unit)))
    }

    /// Reads the string at `pointer`.
    fn read_text(&self, pointer: u64) -> Result<Vec<u8>, Errno> {
        let memory = self.memory()?;
        let mut text = Vec::new();
        while text.len() < MAX_PATH_BYTES {
            let at = pointer.checked_add(text.len() as u64).ok_or(Errno::FAULT)?;
            // Up to the end of the page: the next one may not exist.
            let mut piece = vec![0; (PAGE_BYTES - at % PAGE_BYTES) as usize];
            let length = memory.read_at(&mut piece, at).map_err(|_| Errno::FAULT)?;
            if length == 0 {
                return Err(Errno::FAULT);
            }
            piece.truncate(length);
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return Ok(text);
            }
            text.extend(piece);
        }
        Err(Errno::NAMETOOLONG)
    }

    fn memory(&self) -> Result<File, Errno> {
        File::open(format!("/proc/{}/mem", self.pid)).map_err(|_| Errno::PERM)
    }
}

/// Two times out of the words of their structure.
fn times(words: [i64; 4], unit: TimeUnit) -> Times {
    let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
    match unit {
        TimeUnit::Seconds => [time(words[0], 0), time(words[1], 0)],
        TimeUnit::Microseconds => [
            time(words[0], words[1].saturating_mul(1000)),
            time(words[2], words[3].saturating_mul(1000)),
        ],
        TimeUnit::Nanoseconds => [time(words[0], words[1]), time(words[2], words[3])],
    }
}

fn open_place(path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// The result of a system call, or its error.
pub(super) fn result_of(returned: i64) -> Result<i64, Errno> {
    if returned >= 0 {
        Ok(returned)
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::PERM))
    }
}

#[cfg(test)]
#[path = "requester_tests.rs"]
mod tests;
