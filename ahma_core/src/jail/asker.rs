//! A process of a command that asks its owner: which call it makes, on which file.
//!
//! What it says is copied out of its memory once, and a path is opened once; nothing of it is looked at again.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::sandbox::linux::seccomp::SYS_FCHMODAT2;

/// The longest path that the kernel takes.
const MOST_PATH_BYTES: usize = 4096;
const PAGE_BYTES: u64 = 4096;

/// The process that asks.
pub(super) struct Asker {
    pub(super) pid: u32,
}

/// What to act on.
pub(super) enum Target {
    Named {
        directory: i32,
        path: Vec<u8>,
        follow: bool,
    },
    Open(i32),
}

/// What to change it to.
pub(super) enum Change {
    Mode(u32),
    Owner(u32, u32),
    /// Access and modification; now, if nothing is said.
    Times(Option<[libc::timespec; 2]>),
}

impl Asker {
    pub(super) fn decode(&self, call: i64, arguments: &[u64; 6]) -> Result<(Target, Change), Errno> {
        // The kernel takes these as 32 bits wide, whatever stands above.
        let [number_0, number_1, number_2, number_3, number_4, _] = arguments.map(|argument| argument as u32);
        let named = |directory: u32, pointer: u64, flags: u32| self.named(directory as i32, pointer, flags);
        #[cfg(target_arch = "x86_64")]
        let here = libc::AT_FDCWD as u32;
        #[cfg(target_arch = "x86_64")]
        match call {
            libc::SYS_chmod => return Ok((named(here, arguments[0], 0)?, Change::Mode(number_1))),
            libc::SYS_chown => {
                return Ok((named(here, arguments[0], 0)?, Change::Owner(number_1, number_2)));
            }
            libc::SYS_lchown => {
                let target = named(here, arguments[0], libc::AT_SYMLINK_NOFOLLOW as u32)?;
                return Ok((target, Change::Owner(number_1, number_2)));
            }
            libc::SYS_utime => {
                let times = self.times(arguments[1], Unit::Seconds)?;
                return Ok((named(here, arguments[0], 0)?, Change::Times(times)));
            }
            libc::SYS_utimes => {
                let times = self.times(arguments[1], Unit::Microseconds)?;
                return Ok((named(here, arguments[0], 0)?, Change::Times(times)));
            }
            libc::SYS_futimesat => {
                let times = self.times(arguments[2], Unit::Microseconds)?;
                return Ok((named(number_0, arguments[1], 0)?, Change::Times(times)));
            }
            _ => {}
        }
        Ok(match call {
            libc::SYS_fchmod => (Target::Open(number_0 as i32), Change::Mode(number_1)),
            libc::SYS_fchmodat => (named(number_0, arguments[1], 0)?, Change::Mode(number_2)),
            SYS_FCHMODAT2 => (named(number_0, arguments[1], number_3)?, Change::Mode(number_2)),
            libc::SYS_fchown => (Target::Open(number_0 as i32), Change::Owner(number_1, number_2)),
            libc::SYS_fchownat => (
                named(number_0, arguments[1], number_4)?,
                Change::Owner(number_2, number_3),
            ),
            libc::SYS_utimensat => {
                let times = self.times(arguments[2], Unit::Nanoseconds)?;
                let target = if arguments[1] == 0 {
                    Target::Open(number_0 as i32)
                } else {
                    named(number_0, arguments[1], number_3)?
                };
                (target, Change::Times(times))
            }
            _ => return Err(Errno::NOSYS),
        })
    }

    pub(super) fn named(&self, directory: i32, pointer: u64, flags: u32) -> Result<Target, Errno> {
        let path = self.text(pointer)?;
        if path.is_empty() && flags & libc::AT_EMPTY_PATH as u32 != 0 {
            return Ok(Target::Open(directory));
        }
        // What a process calls its own would be ours if we looked it up.
        let own = format!("/proc/{}/fd/", self.pid);
        for prefix in ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", &own] {
            if let Some(number) = path
                .strip_prefix(prefix.as_bytes())
                .and_then(|rest| std::str::from_utf8(rest).ok())
                .and_then(|rest| rest.parse().ok())
            {
                return Ok(Target::Open(number));
            }
        }
        Ok(Target::Named {
            directory,
            path,
            follow: flags & libc::AT_SYMLINK_NOFOLLOW as u32 == 0,
        })
    }

    pub(super) fn open(&self, target: &Target) -> Result<OwnedFd, Errno> {
        match target {
            Target::Open(libc::AT_FDCWD) => hold(Path::new(&format!("/proc/{}/cwd", self.pid))),
            Target::Open(number) => hold(Path::new(&format!("/proc/{}/fd/{number}", self.pid)))
                .map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error }),
            Target::Named {
                directory,
                path,
                follow,
            } => {
                let mut flags = OFlags::PATH | OFlags::CLOEXEC;
                flags.set(OFlags::NOFOLLOW, !follow);
                let open = |from: std::os::fd::BorrowedFd<'_>| {
                    rustix::fs::openat2(
                        from,
                        path.as_slice(),
                        flags,
                        Mode::empty(),
                        ResolveFlags::NO_MAGICLINKS,
                    )
                };
                if path.starts_with(b"/") {
                    return open(CWD);
                }
                open(self.open(&Target::Open(*directory))?.as_fd())
            }
        }
    }

    /// A descriptor of the asker, as one of our own.
    pub(super) fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let (pid, any_thread) = (self.pid as libc::pid_t, libc::PIDFD_THREAD);
        // SAFETY: takes numbers; who asks may be any thread of its process.
        let process = outcome(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, any_thread) })?;
        // SAFETY: the descriptor is new and nobody else owns it.
        let process = unsafe { OwnedFd::from_raw_fd(process as i32) };
        // SAFETY: takes numbers.
        let taken = outcome(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })?;
        // SAFETY: as above.
        Ok(unsafe { OwnedFd::from_raw_fd(taken as i32) })
    }

    /// A string in the asker's memory.
    fn text(&self, pointer: u64) -> Result<Vec<u8>, Errno> {
        let memory = self.memory()?;
        let mut text = Vec::new();
        while text.len() < MOST_PATH_BYTES {
            let at = pointer + text.len() as u64;
            // The next page may not exist.
            let mut piece = vec![0; (PAGE_BYTES - at % PAGE_BYTES) as usize];
            let length = memory.read_at(&mut piece, at).map_err(|_| Errno::FAULT)?;
            if length == 0 {
                return Err(Errno::FAULT);
            }
            if let Some(end) = piece[..length].iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return Ok(text);
            }
            text.extend_from_slice(&piece[..length]);
        }
        Err(Errno::NAMETOOLONG)
    }

    fn times(&self, pointer: u64, unit: Unit) -> Result<Option<[libc::timespec; 2]>, Errno> {
        if pointer == 0 {
            return Ok(None);
        }
        let mut words = [0_i64; 4];
        let count = if unit == Unit::Seconds { 2 } else { 4 };
        let memory = self.memory()?;
        for (index, word) in words.iter_mut().take(count).enumerate() {
            let mut bytes = [0; 8];
            memory
                .read_exact_at(&mut bytes, pointer + 8 * index as u64)
                .map_err(|_| Errno::FAULT)?;
            *word = i64::from_ne_bytes(bytes);
        }
        let time = |seconds, nanoseconds| libc::timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        };
        Ok(Some(match unit {
            Unit::Seconds => [time(words[0], 0), time(words[1], 0)],
            Unit::Microseconds => [
                time(words[0], words[1].saturating_mul(1000)),
                time(words[2], words[3].saturating_mul(1000)),
            ],
            Unit::Nanoseconds => [time(words[0], words[1]), time(words[2], words[3])],
        }))
    }

    fn memory(&self) -> Result<File, Errno> {
        File::open(format!("/proc/{}/mem", self.pid)).map_err(|_| Errno::PERM)
    }
}

/// In what a call counts parts of a second.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "only older calls count in anything but nanoseconds")
)]
enum Unit {
    Seconds,
    Microseconds,
    Nanoseconds,
}

fn hold(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// What a system call returned, or why it failed.
pub(super) fn outcome(result: i64) -> Result<i64, Errno> {
    if result >= 0 {
        Ok(result)
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::PERM))
    }
}
