//! Answers the notified calls of commands in the core tier: changes of mode, owner and times, and watching files.
//!
//! The kernel suspends each such call and notifies the supervisor, which opens the file itself and makes the change if
//! the file lies where the command may write, or watches it if it lies where the command may read. The supervisor has the
//! user's rights and no capability, so it can do no more than the command. Forks are not notified: a signal that arrives
//! before a notification is read makes the call fail with `EINTR`, and shells fork under a hail of SIGCHLD.
//!
//! Nothing that the command could change meanwhile is looked at twice: the path is copied and opened once, and from then
//! on only the descriptor counts. A call is never let through to the kernel.
//!
//! A path may lead to a file system that never answers, so this runs in a thread of its own: the supervisor goes on
//! reading its control socket, and its exit ends the thread.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
};

use rustix::{event::PollFlags, io::Errno};

use super::{
    notified_call::{self, Action},
    requester::{Requester, result_of},
    wall::AllowedPaths,
};
use crate::{
    jail::{waiting, wire},
    sandbox::held,
};

/// Answers the calls of one operation.
#[derive(Debug)]
struct Broker {
    listener: OwnedFd,
    allowed: AllowedPaths,
}

/// State of the processes that a listener belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listening {
    Active,
    /// No process is left that could be notified of.
    Ended,
}

/// Starts the thread that answers. The command sends its listener over `command`.
///
/// The caller must not fork afterwards.
pub(in crate::jail) fn start(command: OwnedFd, allowed: AllowedPaths) -> io::Result<()> {
    let answer = move || {
        // Nothing comes from a command that could not be started; its exit is reported like any other.
        let listener = wire::receive_short::<()>(&command)
            .ok()
            .flatten()
            .and_then(|((), fds)| fds.into_iter().next());
        drop(command);
        if let Some(listener) = listener {
            let broker = Broker { listener, allowed };
            while broker.answer_one() == Listening::Active {}
        }
    };
    // Not joined: it may be stuck in a file system, and the end of the process ends it.
    std::thread::Builder::new().spawn(answer).map(drop)
}

impl Broker {
    /// Waits for a notification and answers it. The thread sleeps in the very call that reads the notification, because
    /// until then a signal can interrupt the requester.
    fn answer_one(&self) -> Listening {
        // SAFETY: the kernel asks for a zeroed notification; its fields are plain numbers.
        let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills one notification, which lives until the call returns.
        let received = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                &raw mut notification,
            )
        };
        if received != 0 {
            // The requester has died, or all of them.
            return self.listening();
        }
        let (val, error) = match self.perform(&notification) {
            Ok(value) => (value, 0),
            Err(error) => (0, -error.raw_os_error()),
        };
        let mut response = libc::seccomp_notif_resp {
            id: notification.id,
            val,
            error,
            flags: 0,
        };
        // SAFETY: the kernel reads one response. It fails if the requester has died and no longer waits for it.
        unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &raw mut response,
            )
        };
        Listening::Active
    }

    /// A kernel before 6.11 leaves the read asleep when no process is left; the supervisor's exit ends it.
    fn listening(&self) -> Listening {
        if waiting::poll_now(&self.listener).intersects(PollFlags::HUP | PollFlags::ERR) {
            Listening::Ended
        } else {
            Listening::Active
        }
    }

    fn perform(&self, notification: &libc::seccomp_notif) -> Result<i64, Errno> {
        let requester = Requester::new(notification.pid);
        let call = notified_call::decode(i64::from(notification.data.nr), &notification.data.args)
            .ok_or(Errno::NOSYS)?;
        let file = requester.open(call.target)?;
        match call.action {
            Action::SetMode(mode) => {
                self.check_writable(notification, &file)?;
                set_mode(&file, mode)
            }
            Action::SetOwner { user, group } => {
                self.check_writable(notification, &file)?;
                set_owner(&file, user, group)
            }
            Action::SetTimes { pointer, unit } => {
                let times = requester.read_times(pointer, unit)?;
                self.check_writable(notification, &file)?;
                set_times(&file, times.as_ref())
            }
            Action::Watch { inotify, events } => {
                let inotify = requester.take_descriptor(inotify)?;
                self.check_pending(notification)?;
                if !is_below(&self.allowed.readable, &file) {
                    return Err(Errno::ACCESS);
                }
                watch(&inotify, &file, events)
            }
        }
    }

    fn check_writable(&self, notification: &libc::seccomp_notif, file: &OwnedFd) -> Result<(), Errno> {
        self.check_pending(notification)?;
        if is_below(&self.allowed.writable, file) {
            Ok(())
        } else {
            Err(Errno::PERM)
        }
    }

    /// Fails if the requester has died: pids are reused, so what was read of it may have been another process's.
    fn check_pending(&self, notification: &libc::seccomp_notif) -> Result<(), Errno> {
        let mut id = notification.id;
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

/// Judges by the file's present path. It can be moved meanwhile, but by commands only to where they may write.
fn is_below(roots: &[PathBuf], file: &OwnedFd) -> bool {
    let Ok(path) = fs::read_link(held::same_path(file.as_fd())) else {
        return false;
    };
    // Pipes, sockets and memory have no path.
    let has_no_path = !path.is_absolute() || path.as_os_str().as_bytes().starts_with(b"/memfd:");
    has_no_path || roots.iter().any(|root| path.starts_with(root))
}

fn set_mode(file: &OwnedFd, mode: u32) -> Result<i64, Errno> {
    let path = c_path(file)?;
    // SAFETY: the path ends in NUL.
    result_of(unsafe { libc::chmod(path.as_ptr(), mode as libc::mode_t) }.into())
}

fn set_owner(file: &OwnedFd, user: u32, group: u32) -> Result<i64, Errno> {
    let (fd, flags) = (file.as_raw_fd(), libc::AT_EMPTY_PATH);
    // SAFETY: the empty path ends in NUL and stands for the descriptor.
    result_of(unsafe { libc::fchownat(fd, c"".as_ptr(), user, group, flags) }.into())
}

fn set_times(file: &OwnedFd, times: Option<&[libc::timespec; 2]>) -> Result<i64, Errno> {
    let (fd, flags) = (file.as_raw_fd(), libc::AT_EMPTY_PATH);
    let times = times.map_or(std::ptr::null(), |times| times.as_ptr());
    // SAFETY: the empty path ends in NUL and stands for the descriptor; the times, if any, outlive the call.
    result_of(unsafe { libc::utimensat(fd, c"".as_ptr(), times, flags) }.into())
}

/// Watches the inode that is held, by an inotify descriptor of the requester.
fn watch(inotify: &OwnedFd, file: &OwnedFd, events: u32) -> Result<i64, Errno> {
    // A link that is not to be followed is held itself, and this leads to it.
    let (path, events) = (c_path(file)?, events & !libc::IN_DONT_FOLLOW);
    // SAFETY: the path ends in NUL.
    result_of(unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), path.as_ptr(), events) }.into())
}

/// A path to the inode that is held.
fn c_path(file: &OwnedFd) -> Result<CString, Errno> {
    CString::new(held::same_path(file.as_fd()).into_os_string().into_vec()).map_err(|_| Errno::INVAL)
}
