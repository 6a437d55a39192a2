//! A process beside the command that answers its calls. It ends with the last process that it answers.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{AddressFamily, SocketFlags, SocketType},
};
use test_support::Profile;

use crate::{calls, requester::Requester};

/// The way to a monitor that waits for the descriptor to answer on.
pub(crate) struct Monitor {
    socket: OwnedFd,
}

/// Starts it, in the namespaces of the command and with the rights there that the command is about to give up.
pub(crate) fn start(profile: Profile) -> io::Result<Monitor> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: this process has one thread, so its copy may run any code.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            // A child of the command would be waited for by it: the grandchild goes on.
            // SAFETY: as above.
            if unsafe { libc::fork() } == 0 {
                rustix::process::setsid().ok();
                close_all_but(&theirs);
                serve(&profile, &theirs);
            }
            // SAFETY: ends this process without the destructors that it shares with its parent.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the pointer is to a live variable.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
        }
    }
    Ok(Monitor { socket: ours })
}

impl Monitor {
    /// From now on the calls of this process, and of all that it starts, wait for the monitor's answer.
    pub(crate) fn watch_this_process(self) -> io::Result<()> {
        const SET_MODE_FILTER: libc::c_uint = 1;
        let mut filter = calls::filter();
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).map_err(io::Error::other)?,
            filter: filter.as_mut_ptr(),
        };
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        // SAFETY: the program lives until the call returns.
        let listener =
            unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program) };
        if listener < 0 {
            return Err(io::Error::last_os_error());
        }
        // The monitor takes it by its number: to send it would be a call that has to wait for an answer already.
        let message = [
            rustix::process::getpid().as_raw_nonzero().get(),
            listener as RawFd,
        ];
        let bytes: Vec<u8> = message.iter().flat_map(|number| number.to_ne_bytes()).collect();
        rustix::io::write(&self.socket, &bytes)?;
        let mut taken = [0; 1];
        let answered = rustix::io::read(&self.socket, &mut taken)?;
        // SAFETY: the descriptor is new and not owned elsewhere.
        drop(unsafe { OwnedFd::from_raw_fd(listener as RawFd) });
        if answered == 1 {
            Ok(())
        } else {
            Err(io::Error::other("the monitor died"))
        }
    }
}

fn serve(profile: &Profile, socket: &OwnedFd) {
    let Some(listener) = take_listener(socket) else {
        return;
    };
    let mut fds = [PollFd::new(&listener, PollFlags::IN)];
    loop {
        if poll(&mut fds, None).is_err() {
            continue;
        }
        if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return;
        }
        answer(profile, &listener);
    }
}

fn take_listener(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut bytes = [0; 8];
    rustix::io::read(socket, &mut bytes)
        .ok()
        .filter(|length| *length == bytes.len())?;
    let (pid, number) = bytes.split_at(4);
    let [pid, number] = [pid, number].map(|half| half.try_into().map_or(0, i32::from_ne_bytes));
    let process = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(pid)?,
        rustix::process::PidfdFlags::empty(),
    )
    .ok()?;
    let listener =
        rustix::process::pidfd_getfd(process.as_fd(), number, rustix::process::PidfdGetfdFlags::empty())
            .ok()?;
    rustix::io::write(socket, b".").ok()?;
    Some(listener)
}

fn answer(profile: &Profile, listener: &OwnedFd) {
    // SAFETY: plain numbers, for which zero is a value; the kernel wants it so.
    let mut request: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable of the type that the kernel fills.
    let received = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV as _,
            &raw mut request,
        )
    };
    // The process was killed meanwhile.
    if received < 0 {
        return;
    }
    let requester = Requester {
        pid: i32::try_from(request.pid).unwrap_or(0),
    };
    let is_allowed = calls::is_allowed(profile, &requester, request.data.nr, &request.data.args);
    let response = libc::seccomp_notif_resp {
        id: request.id,
        val: 0,
        error: if is_allowed { 0 } else { -libc::EPERM },
        flags: if is_allowed {
            libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32
        } else {
            0
        },
    };
    // SAFETY: the pointer is to a live variable of the type that the kernel reads.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND as _,
            &raw const response,
        )
    };
}

/// Holds nothing of the command open, above all not its output.
fn close_all_but(kept: &OwnedFd) {
    let kept = kept.as_raw_fd().unsigned_abs();
    // SAFETY: nothing in this process uses the descriptors that are closed.
    unsafe {
        libc::close_range(0, kept - 1, 0);
        libc::close_range(kept + 1, u32::MAX, 0);
    }
}
