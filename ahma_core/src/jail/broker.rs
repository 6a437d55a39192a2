//! Changes of mode, owner and times on behalf of commands of the core tier.
//!
//! Landlock does not know these calls, so without a mount view a command could make them on any file of its user. The
//! kernel stops each such call and asks the owner instead, who opens the file itself, and changes it if it lies where
//! the command may write. The owner has the user's rights and no capability, so it can do no more than the command.
//!
//! Nothing that the command could change meanwhile is looked at twice: the path is copied, opened once, and from then on
//! only the descriptor counts. The command's call itself is never let through.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::sandbox::linux::seccomp::SYS_FCHMODAT2;

/// The longest path that the kernel takes.
const MOST_PATH_BYTES: usize = 4096;
const PAGE_BYTES: u64 = 4096;

/// Answers the calls of one operation.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) listener: OwnedFd,
    /// Canonical; below these a command may change what it likes.
    pub(super) writable: Vec<PathBuf>,
}

/// Whether anyone is left who could ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Askers {
    Alive,
    Gone,
}

/// What to change.
enum Target {
    Named {
        directory: i32,
        path: Vec<u8>,
        follow: bool,
    },
    Open(i32),
}

/// What to change it to.
enum Change {
    Mode(u32),
    Owner(u32, u32),
    /// Access and modification; now, if nothing is said.
    Times(Option<[libc::timespec; 2]>),
}

/// The process that asks.
struct Asker {
    pid: u32,
}

impl Broker {
    /// Answers everything that has been asked.
    pub(super) fn serve(&self) -> Askers {
        loop {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            rustix::event::poll(&mut fds, Some(&now)).ok();
            let found = fds[0].revents();
            if found.contains(PollFlags::IN) {
                self.answer_one();
            } else if found.is_empty() {
                return Askers::Alive;
            } else {
                return Askers::Gone;
            }
        }
    }

    fn answer_one(&self) {
        // SAFETY: a zeroed notification is what the kernel asks for; its fields are plain numbers.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills one notification, which lives until the call returns.
        let received = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                &raw mut asked,
            )
        };
        if received != 0 {
            return;
        }
        let errno = match self.act(&asked) {
            Ok(()) => 0,
            Err(error) => error.raw_os_error(),
        };
        let mut answer = libc::seccomp_notif_resp {
            id: asked.id,
            val: 0,
            error: -errno,
            flags: 0,
        };
        // SAFETY: the kernel reads one answer. It fails if the asker has died, and then nobody waits for it.
        unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &raw mut answer,
            )
        };
    }

    fn act(&self, asked: &libc::seccomp_notif) -> Result<(), Errno> {
        let asker = Asker { pid: asked.pid };
        let (target, change) = asker.decode(i64::from(asked.data.nr), &asked.data.args)?;
        let file = asker.open(&target)?;
        // All that was read of the asker was its own only if it lives still: numbers are used again.
        let mut id = asked.id;
        // SAFETY: the kernel reads one number.
        let is_valid = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
                &raw mut id,
            )
        };
        if is_valid != 0 {
            return Err(Errno::NOENT);
        }
        if !self.may_change(&file) {
            return Err(Errno::PERM);
        }
        change.apply(&file)
    }

    /// By where the file is now. It can be moved meanwhile, but by commands only to where they may write.
    fn may_change(&self, file: &OwnedFd) -> bool {
        let Ok(place) = fs::read_link(by_descriptor(file)) else {
            return false;
        };
        // Pipes, sockets and memory have no path.
        let is_nowhere = !place.is_absolute() || place.as_os_str().as_bytes().starts_with(b"/memfd:");
        is_nowhere || self.writable.iter().any(|root| place.starts_with(root))
    }
}

impl Asker {
    fn decode(&self, call: i64, arguments: &[u64; 6]) -> Result<(Target, Change), Errno> {
        // The kernel takes these as 32 bits wide, whatever stands above.
        let [number_0, number_1, number_2, number_3, number_4, _] = arguments.map(|argument| argument as u32);
        let named = |directory: u32, pointer: u64, flags: u32| self.named(directory as i32, pointer, flags);
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

    fn named(&self, directory: i32, pointer: u64, flags: u32) -> Result<Target, Errno> {
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

    fn open(&self, target: &Target) -> Result<OwnedFd, Errno> {
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
enum Unit {
    Seconds,
    Microseconds,
    Nanoseconds,
}

impl Change {
    fn apply(&self, file: &OwnedFd) -> Result<(), Errno> {
        let fd = file.as_raw_fd();
        let result = match self {
            Self::Mode(mode) => {
                let path = std::ffi::CString::new(by_descriptor(file).into_os_string().as_bytes())
                    .map_err(|_| Errno::INVAL)?;
                // SAFETY: the path ends in NUL. It leads to the very inode that is held.
                unsafe { libc::chmod(path.as_ptr(), *mode as libc::mode_t) }
            }
            // SAFETY: the empty path ends in NUL and stands for the descriptor.
            Self::Owner(user, group) => unsafe {
                libc::fchownat(fd, c"".as_ptr(), *user, *group, libc::AT_EMPTY_PATH)
            },
            Self::Times(times) => {
                let times = times.as_ref().map_or(std::ptr::null(), |times| times.as_ptr());
                // SAFETY: as above; the times, if any, live until the call returns.
                unsafe { libc::utimensat(fd, c"".as_ptr(), times, libc::AT_EMPTY_PATH) }
            }
        };
        if result == 0 {
            Ok(())
        } else {
            Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::PERM))
        }
    }
}

fn hold(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn by_descriptor(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}
