//! Capabilities and resource limits of a command.

use std::io;

use rustix::{
    process::Resource,
    thread::{CapabilitySet, CapabilitySets},
};

use crate::sandbox::limits::{self, lower_to};

/// Lowers what the calling process, and all that it starts, may use up. A limit that is lower already stays.
pub(crate) fn lower_limits(max_file_bytes: u64) -> io::Result<()> {
    limits::lower(max_file_bytes)?;
    lower_to(Resource::Memlock, 8 * 1024 * 1024)?;
    lower_to(Resource::Msgqueue, 1024 * 1024)
}

/// The same for processes, which the kernel counts by user.
pub(crate) fn limit_processes(count: u64) -> io::Result<()> {
    lower_to(Resource::Nproc, count)
}

/// Empties the bounding set, so that no exec brings a capability back, not even for root.
pub(crate) fn empty_bounding_set() -> io::Result<()> {
    for number in 0..64_u32 {
        // SAFETY: PR_CAPBSET_DROP takes a number and no pointer.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number as libc::c_ulong, 0, 0, 0) };
        if result == 0 {
            continue;
        }
        match io::Error::last_os_error().raw_os_error() {
            // Past the last capability that this kernel knows.
            Some(libc::EINVAL) => return Ok(()),
            // Without CAP_SETPCAP there is nothing to drop from: an ordinary user holds no capability, and
            // no_new_privs keeps exec from adding one.
            Some(libc::EPERM) if holds_no_capability()? => return Ok(()),
            _ => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// Gives up every capability of the calling process, for good.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

fn holds_no_capability() -> io::Result<bool> {
    Ok(rustix::thread::capabilities(None)?.permitted.is_empty())
}
