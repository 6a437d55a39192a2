//! What commands of the core tier do only with their owner's consent: changes of mode, owner and times, watching files,
//! and new processes, which are counted here because no kernel limit counts those of one operation.
//!
//! Landlock does not know these calls, so without a mount view a command could make them on any file of its user. The
//! kernel stops each such call and asks the owner instead, who opens the file itself, and changes it if it lies where
//! the command may write, or watches it if it lies where the command may read. The owner has the user's rights and no
//! capability, so it can do no more than the command.
//!
//! Nothing that the command could change meanwhile is looked at twice: the path is copied, opened once, and from then on
//! only the descriptor counts. A call with a path is never let through itself.
//!
//! A path may lead to a file system that never answers, so all this is done in a thread of its own: the owner goes on
//! hearing the order to stop, and its end is the thread's end. Only callers queued behind that answer are delayed.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
    sync::Arc,
};

use rustix::{event::PollFlags, io::Errno, pipe::PipeFlags};

use super::{
    asker::{Asker, Change, outcome},
    cell::Places,
    children,
    population::{Births, Population, is_birth},
    wire,
};
use crate::sandbox::directory::by_descriptor;

/// Answers the calls of one operation.
#[derive(Debug)]
struct Broker {
    listener: OwnedFd,
    /// Below these a command may change or watch what it likes.
    places: Places,
    population: Population,
    births: Arc<Births>,
}

/// What the kernel is told.
enum Answer {
    Value(i64),
    /// To make the call as if nobody had been asked. Only where no argument mattered: they can change meanwhile.
    GoOn,
}

/// Whether anyone is left who could ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Askers {
    Alive,
    Gone,
}

/// Starts the thread that answers. The command says over `command` on which descriptor it and all below it ask.
///
/// The returned descriptor hangs up when nobody answers any more. The caller must not fork from here on.
pub(super) fn start(
    command: OwnedFd,
    places: Places,
    max_processes: u32,
    births: Arc<Births>,
) -> io::Result<OwnedFd> {
    let (ended, answering) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let answer = move || {
        // Closes last, however this ends.
        let _answering = answering;
        // Nothing comes from a command that could not be started; its exit is reported as any other.
        let listener = wire::receive_short::<()>(&command)
            .ok()
            .flatten()
            .and_then(|((), fds)| fds.into_iter().next());
        drop(command);
        if let Some(listener) = listener {
            let mut broker = Broker {
                listener,
                places,
                population: Population::new(max_processes),
                births,
            };
            while broker.answer_one() == Askers::Alive {}
        }
    };
    // Not waited for: it may be stuck, and the end of the process ends it.
    std::thread::Builder::new().spawn(answer).map(drop)?;
    Ok(ended)
}

impl Broker {
    /// Waits for a question and answers it. The thread sleeps in the very call that takes the question, because an asker
    /// can be interrupted by a signal until it is taken.
    fn answer_one(&mut self) -> Askers {
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
            // Who asked has died, or everybody has.
            return self.askers();
        }
        let (val, error, flags) = match self.act(&asked) {
            Ok(Answer::Value(value)) => (value, 0, 0),
            Ok(Answer::GoOn) => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Err(error) => (0, -error.raw_os_error(), 0),
        };
        let mut answer = libc::seccomp_notif_resp {
            id: asked.id,
            val,
            error,
            flags,
        };
        // SAFETY: the kernel reads one answer. It fails if the asker has died, and then nobody waits for it.
        unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &raw mut answer,
            )
        };
        Askers::Alive
    }

    /// A kernel before 6.11 leaves the call above asleep when nobody is left; the owner's end ends it.
    fn askers(&self) -> Askers {
        if children::now(&self.listener).intersects(PollFlags::HUP | PollFlags::ERR) {
            Askers::Gone
        } else {
            Askers::Alive
        }
    }

    fn act(&mut self, asked: &libc::seccomp_notif) -> Result<Answer, Errno> {
        let asker = Asker { pid: asked.pid };
        let call = i64::from(asked.data.nr);
        if is_birth(call) {
            return if self.births.are_refused() || !self.population.has_room() {
                Err(Errno::AGAIN)
            } else {
                Ok(Answer::GoOn)
            };
        }
        if call == libc::SYS_inotify_add_watch {
            return self.watch(&asker, asked).map(Answer::Value);
        }
        let (target, change) = asker.decode(call, &asked.data.args)?;
        let file = asker.open(&target)?;
        self.still_asks(asked)?;
        if !is_in(&self.places.writable, &file) {
            return Err(Errno::PERM);
        }
        change.apply(&file).map(|()| Answer::Value(0))
    }

    fn watch(&self, asker: &Asker, asked: &libc::seccomp_notif) -> Result<i64, Errno> {
        let [number, path, events, ..] = asked.data.args;
        let events = events as u32;
        let flags = if events & libc::IN_DONT_FOLLOW == 0 {
            0
        } else {
            libc::AT_SYMLINK_NOFOLLOW
        };
        let file = asker.open(&asker.named(libc::AT_FDCWD, path, flags as u32)?)?;
        let by = asker.descriptor(number as i32)?;
        self.still_asks(asked)?;
        if !is_in(&self.places.readable, &file) {
            return Err(Errno::ACCESS);
        }
        watch_inode(&by, &file, events)
    }

    /// All that was read of the asker was its own only if it lives still: numbers are used again.
    fn still_asks(&self, asked: &libc::seccomp_notif) -> Result<(), Errno> {
        let mut id = asked.id;
        // SAFETY: the kernel reads one number.
        let is_valid = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
                &raw mut id,
            )
        };
        if is_valid == 0 { Ok(()) } else { Err(Errno::NOENT) }
    }
}

/// By where the file is now. It can be moved meanwhile, but by commands only to where they may write.
fn is_in(roots: &[PathBuf], file: &OwnedFd) -> bool {
    let Ok(place) = fs::read_link(by_descriptor(file.as_fd())) else {
        return false;
    };
    // Pipes, sockets and memory have no path.
    let is_nowhere = !place.is_absolute() || place.as_os_str().as_bytes().starts_with(b"/memfd:");
    is_nowhere || roots.iter().any(|root| place.starts_with(root))
}

impl Change {
    fn apply(&self, file: &OwnedFd) -> Result<(), Errno> {
        let fd = file.as_raw_fd();
        let result = match self {
            Self::Mode(mode) => {
                let path = c_path(file)?;
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
        outcome(result.into()).map(drop)
    }
}

/// A path to the very inode that is held.
fn c_path(file: &OwnedFd) -> Result<CString, Errno> {
    CString::new(by_descriptor(file.as_fd()).into_os_string().into_vec()).map_err(|_| Errno::INVAL)
}

/// Watches the very inode that is held, by an inotify descriptor of the asker.
fn watch_inode(by: &OwnedFd, file: &OwnedFd, events: u32) -> Result<i64, Errno> {
    // A link that is not to be followed is held itself, and this leads to it.
    let path = c_path(file)?;
    let events = events & !libc::IN_DONT_FOLLOW;
    // SAFETY: the path ends in NUL.
    outcome(unsafe { libc::inotify_add_watch(by.as_raw_fd(), path.as_ptr(), events) }.into())
}
