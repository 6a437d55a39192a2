//! Namespaces of the command: mounts that are read-only where the profile lets nothing be written, and no network if it
//! opens none.

use std::{
    ffi::CString,
    fs, io,
    net::{IpAddr, Ipv4Addr},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    mount::{MountPropagationFlags, mount_bind_recursive, mount_change},
    thread::{CapabilitySet, CapabilitySets, UnshareFlags},
};
use test_support::{Profile, Subject};

use crate::start::{here, there};

/// Enters the namespaces. The process keeps its capabilities in them until [`drop_privileges`].
pub(crate) fn enter(profile: &Profile) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
    if !reaches_network(profile) {
        flags |= UnshareFlags::NEWNET;
    }
    // SAFETY: this process has one thread and shares nothing with another.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let directory = std::env::current_dir()?;
    let changes = changes(profile);
    for (path, _) in &changes {
        mount_bind_recursive(path, path)?;
    }
    // What was read-only before stays so.
    if !may_write(profile, Path::new("/")) {
        set_read_only(Path::new("/"), true)?;
    }
    for (path, is_writable) in &changes {
        set_read_only(path, !is_writable)?;
    }
    // By the path, which leads into the new mount.
    std::env::set_current_dir(directory)
}

/// Gives up every capability, for good.
pub(crate) fn drop_privileges() -> io::Result<()> {
    for number in 0..64_u32 {
        // SAFETY: takes a number and no pointer; fails harmlessly past the last capability.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Existing paths that are written while what is above them is not, or the other way round; parents first.
fn changes(profile: &Profile) -> Vec<(PathBuf, bool)> {
    let mut named: Vec<PathBuf> = profile.named_paths().map(here).collect();
    named.sort();
    named.dedup();
    let is_regular =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() || found.is_file());
    named
        .into_iter()
        .filter(|path| is_regular(path))
        .filter_map(|path| {
            let is_writable = may_write(profile, &path);
            let is_writable_above = path.parent().is_some_and(|above| may_write(profile, above));
            (is_writable != is_writable_above).then_some((path, is_writable))
        })
        .collect()
}

/// A file can be changed, or made in a directory.
pub(crate) fn may_write(profile: &Profile, path: &Path) -> bool {
    profile.allows("file-write-create", Subject::Path(&there(path).join("new")))
        || profile.allows("file-write-data", Subject::Path(&there(path))) && !path.is_dir()
}

pub(crate) fn reaches_network(profile: &Profile) -> bool {
    let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
    profile.allows("network-outbound", Subject::Remote(loopback, 1)) || profile.named_ports().next().is_some()
}

fn set_read_only(path: &Path, is_read_only: bool) -> io::Result<()> {
    const READ_ONLY: u64 = 1;
    let (set, clear) = if is_read_only {
        (READ_ONLY, 0)
    } else {
        (0, READ_ONLY)
    };
    let attributes: [u64; 4] = [set, clear, 0, 0];
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends in NUL, and the attributes are four numbers of the size given; both outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
