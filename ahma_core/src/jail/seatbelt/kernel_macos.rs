//! The kernel's answers about processes on macOS.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    sync::LazyLock,
};

use rustix::process::Pid;

use super::mark::Mark;

/// One process of this user.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessFacts {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) threads: usize,
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

/// Marks can be read here: asked about ourselves, who are in no sandbox, the kernel allows everything.
pub(super) fn check() -> Result<(), String> {
    let ourselves = rustix::process::getpid();
    let mark = Mark::random();
    match (
        may_look_up(ourselves, &mark.allowed()),
        may_look_up(ourselves, &mark.denied()),
    ) {
        (Some(true), Some(true)) => Ok(()),
        (None, _) | (_, None) => {
            Err("sandbox_check, which finds the processes of a command, is missing".into())
        }
        _ => Err("this process is in a sandbox already".into()),
    }
}

/// The process lives and is in the sandbox of this mark.
pub(super) fn has_mark(pid: Pid, mark: Mark) -> bool {
    let is_marked =
        may_look_up(pid, &mark.allowed()) == Some(true) && may_look_up(pid, &mark.denied()) == Some(false);
    // A dead process is said to be in a sandbox.
    is_marked && rustix::process::test_kill_process(pid).is_ok()
}

fn may_look_up(pid: Pid, service: &str) -> Option<bool> {
    let check = (*SANDBOX_CHECK)?;
    let service = CString::new(service).ok()?;
    // SAFETY: both strings end in NUL and outlive the call; the filter takes one string.
    let answer = unsafe {
        check(
            pid.as_raw_nonzero().get(),
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

/// The processes of this user that have not ended.
pub(super) fn processes() -> Vec<ProcessFacts> {
    const UID_ONLY: u32 = 4;
    /// Room for those that are born between the two calls.
    const SPARE: usize = 256;
    let user = rustix::process::getuid().as_raw();
    // SAFETY: without a buffer the call returns the length it would need.
    let needed = unsafe { libc::proc_listpids(UID_ONLY, user, std::ptr::null_mut(), 0) };
    let count = usize::try_from(needed).unwrap_or(0) / size_of::<i32>() + SPARE;
    let mut pids = vec![0_i32; count];
    let length = i32::try_from(count * size_of::<i32>()).unwrap_or(i32::MAX);
    // SAFETY: the buffer has that length and outlives the call.
    let filled = unsafe { libc::proc_listpids(UID_ONLY, user, pids.as_mut_ptr().cast(), length) };
    pids.truncate(usize::try_from(filled).unwrap_or(0) / size_of::<i32>());
    pids.into_iter().filter_map(facts).collect()
}

fn facts(pid: i32) -> Option<ProcessFacts> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut info: libc::proc_taskallinfo = unsafe { std::mem::zeroed() };
    let length = i32::try_from(size_of_val(&info)).ok()?;
    // SAFETY: the buffer has that length and outlives the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTASKALLINFO, 0, (&raw mut info).cast(), length) };
    if filled != length || info.pbsd.pbi_status == libc::SZOMB {
        return None;
    }
    Some(ProcessFacts {
        pid: Pid::from_raw(pid)?,
        parent: i32::try_from(info.pbsd.pbi_ppid).ok()?,
        threads: usize::try_from(info.ptinfo.pti_threadnum).unwrap_or(1),
    })
}
