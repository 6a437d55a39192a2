//! The calls. An answer that does not come is `None` or an empty list: the process has ended, or is another user's.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    sync::LazyLock,
    time::Duration,
};

use super::{
    connection::{Connection, DESCRIPTION_BYTES},
    facts::ProcessFacts,
};

/// Resources that one process uses.
#[derive(Debug, Clone, Copy)]
pub struct ProcessUsage {
    /// Memory that the system would have back if it ended.
    pub memory_bytes: u64,
    /// Processor time of it and of those it has waited for.
    pub cpu: Duration,
}

/// Room for what is new between two calls.
const SPARE: usize = 256;

/// The numbers of all processes, or of those of one user.
pub fn processes(user: Option<u32>) -> Vec<i32> {
    const ALL: u32 = 1;
    const OF_USER: u32 = 4;
    let (which, user) = user.map_or((ALL, 0), |user| (OF_USER, user));
    // SAFETY: without a buffer the call returns the length it would need.
    let needed = unsafe { libc::proc_listpids(which, user, std::ptr::null_mut(), 0) };
    let mut pids = vec![0_i32; usize::try_from(needed).unwrap_or(0) / size_of::<i32>() + SPARE];
    let length = c_int::try_from(size_of_val(&*pids)).unwrap_or(c_int::MAX);
    // SAFETY: the buffer has that length and outlives the call.
    let filled = unsafe { libc::proc_listpids(which, user, pids.as_mut_ptr().cast(), length) };
    pids.truncate(usize::try_from(filled).unwrap_or(0) / size_of::<i32>());
    pids
}

/// Of every user's processes.
pub fn facts(pid: i32) -> Option<ProcessFacts> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut info: libc::proc_bsdinfo = unsafe { std::mem::zeroed() };
    let length = c_int::try_from(size_of_val(&info)).ok()?;
    // SAFETY: the buffer has that length and outlives the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, (&raw mut info).cast(), length) };
    if filled != length || info.pbi_status == libc::SZOMB {
        return None;
    }
    Some(ProcessFacts {
        pid,
        parent: i32::try_from(info.pbi_ppid).ok()?,
        started: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
    })
}

pub fn thread_count(pid: i32) -> Option<usize> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut info: libc::proc_taskinfo = unsafe { std::mem::zeroed() };
    let length = c_int::try_from(size_of_val(&info)).ok()?;
    // SAFETY: the buffer has that length and outlives the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, (&raw mut info).cast(), length) };
    (filled == length).then(|| usize::try_from(info.pti_threadnum).unwrap_or(1))
}

/// The descriptors of a process that are sockets.
pub fn socket_descriptors(pid: i32) -> Vec<i32> {
    // SAFETY: without a buffer the call returns the length it would need.
    let needed = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, std::ptr::null_mut(), 0) };
    let Some(needed) = usize::try_from(needed).ok().filter(|needed| *needed > 0) else {
        return Vec::new();
    };
    let one = size_of::<libc::proc_fdinfo>();
    let empty = libc::proc_fdinfo {
        proc_fd: 0,
        proc_fdtype: 0,
    };
    let mut found = vec![empty; needed / one + SPARE];
    let length = c_int::try_from(size_of_val(&*found)).unwrap_or(c_int::MAX);
    // SAFETY: the buffer has that length and outlives the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, found.as_mut_ptr().cast(), length) };
    found.truncate(usize::try_from(filled).unwrap_or(0) / one);
    let is_socket = |found: &libc::proc_fdinfo| found.proc_fdtype == libc::PROX_FDTYPE_SOCKET.cast_unsigned();
    let sockets = found.iter().filter(|found| is_socket(found));
    sockets.map(|socket| socket.proc_fd).collect()
}

/// The TCP connection that a process holds under this number.
pub fn connection(pid: i32, descriptor: i32) -> Option<Connection> {
    const SOCKET_INFO: c_int = 3;
    let mut description = [0_u8; DESCRIPTION_BYTES];
    let length = c_int::try_from(DESCRIPTION_BYTES).ok()?;
    // SAFETY: the buffer has that length and outlives the call.
    let filled = unsafe {
        libc::proc_pidfdinfo(
            pid,
            descriptor,
            SOCKET_INFO,
            description.as_mut_ptr().cast(),
            length,
        )
    };
    (filled == length).then(|| Connection::read(&description))?
}

pub fn usage(pid: i32) -> Option<ProcessUsage> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut info: libc::rusage_info_v2 = unsafe { std::mem::zeroed() };
    // SAFETY: the buffer is of the kind that is asked for and outlives the call.
    let answer = unsafe { libc::proc_pid_rusage(pid, libc::RUSAGE_INFO_V2, (&raw mut info).cast()) };
    if answer != 0 {
        return None;
    }
    let own = info.ri_user_time.saturating_add(info.ri_system_time);
    let of_children = info.ri_child_user_time.saturating_add(info.ri_child_system_time);
    Some(ProcessUsage {
        memory_bytes: info.ri_phys_footprint,
        cpu: from_ticks(own.saturating_add(of_children)),
    })
}

/// The kernel counts in ticks of a clock of its own, which differs between processors.
#[expect(deprecated, reason = "two numbers are no reason for another crate")]
fn from_ticks(ticks: u64) -> Duration {
    let mut base = libc::mach_timebase_info { numer: 0, denom: 0 };
    // SAFETY: the pointer is to a live variable.
    unsafe { libc::mach_timebase_info(&raw mut base) };
    let nanoseconds = u128::from(ticks) * u128::from(base.numer) / u128::from(base.denom.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// The load average of one minute.
pub fn load_average() -> Option<f64> {
    let mut load = 0.0;
    // SAFETY: the pointer is to one number, and one is asked for.
    let answers = unsafe { libc::getloadavg(&raw mut load, 1) };
    (answers == 1).then_some(load)
}

/// Variadic, as its real declaration is: on arm64 such arguments are passed in another place.
type SandboxCheck = unsafe extern "C" fn(libc::pid_t, *const c_char, c_int, ...) -> c_int;

/// Asks about a global Mach service, without a line in the system's log.
const GLOBAL_NAME_WITHOUT_REPORT: c_int = 2 | 0x4000_0000;

/// Exported by the system's library and declared in no header, so it is looked for by name.
static SANDBOX_CHECK: LazyLock<Option<SandboxCheck>> = LazyLock::new(|| {
    // SAFETY: the name ends in NUL.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"sandbox_check".as_ptr()) };
    // SAFETY: the symbol is the function of this name; a missing one is a null pointer, which is `None`.
    unsafe { std::mem::transmute::<*mut c_void, Option<SandboxCheck>>(symbol) }
});

/// The process may look up the one service and not the other, which is so only in a sandbox whose profile says so. None if
/// the kernel cannot be asked. Of a process that has ended the answer means nothing.
pub fn has_mark(pid: i32, allowed: &str, denied: &str) -> Option<bool> {
    Some(may_look_up(pid, allowed)? && !may_look_up(pid, denied)?)
}

/// The process may look up this service. None if the kernel cannot be asked.
pub fn may_look_up(pid: i32, service: &str) -> Option<bool> {
    let check = (*SANDBOX_CHECK)?;
    let service = CString::new(service).ok()?;
    // SAFETY: both strings end in NUL and outlive the call; the filter takes one string.
    let answer = unsafe {
        check(
            pid,
            c"mach-lookup".as_ptr(),
            GLOBAL_NAME_WITHOUT_REPORT,
            service.as_ptr(),
        )
    };
    match answer {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    }
}
