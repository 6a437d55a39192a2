//! Calls of the core tier that are answered by the supervisor instead of the kernel.

use std::{
    env::consts::ARCH,
    io,
    os::fd::{FromRawFd, OwnedFd},
};

use seccompiler::{BpfProgram, SeccompAction, TargetArch};

use super::{call_rules::CallRules, instructions::RETURN};

/// A filter that turns `calls` into notifications.
pub(crate) fn notification_filter(calls: &[i64]) -> io::Result<BpfProgram> {
    const TRACE: u32 = 0x7ff0_0000;
    const USER_NOTIFICATION: u32 = 0x7fc0_0000;
    let arch = TargetArch::try_from(ARCH).map_err(io::Error::other)?;
    let mut program = CallRules::always(calls).compile(arch, SeccompAction::Trace(0))?;
    // Seccompiler has no action for notifications; "trace" holds its place.
    for instruction in &mut program {
        if instruction.code == RETURN && instruction.k == TRACE {
            instruction.k = USER_NOTIFICATION;
        }
    }
    Ok(program)
}

/// Installs a [`notification_filter`] and returns the descriptor from which its notifications are read.
pub(crate) fn install_listener(program: &BpfProgram) -> io::Result<OwnedFd> {
    const SET_MODE_FILTER: libc::c_uint = 1;
    /// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`, which the libc crate does not have.
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let request = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: both crates mirror the kernel's structure; the program lives until the call returns.
    let fd = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const request) };
    match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => {
            // Hands the processor to the supervisor at once, since Linux 6.6: until a notification is read, a signal can
            // interrupt the call. Without it that is only likelier.
            // SAFETY: takes numbers.
            unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) };
            // SAFETY: the descriptor is new and not owned elsewhere.
            Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}
