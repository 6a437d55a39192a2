//! A stand-in for the kernel of macOS, so that the rest of this module runs in tests elsewhere: the test program that takes
//! the place of `sandbox-exec` passes the mark on as a resource limit, which every descendant inherits and none raises.

use std::fs;

use rustix::process::Pid;

use super::mark::Mark;

/// One process of this user.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessFacts {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) threads: usize,
}

/// Marks can be read here.
pub(super) fn check() -> Result<(), String> {
    Ok(())
}

/// The process lives and is in the sandbox of this mark.
pub(super) fn has_mark(pid: Pid, mark: Mark) -> bool {
    // SAFETY: zeroed limits are valid; the kernel fills them in, and reads nothing without new ones.
    let mut limits: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable.
    let answer = unsafe {
        libc::prlimit(
            pid.as_raw_nonzero().get(),
            libc::RLIMIT_RTTIME,
            std::ptr::null(),
            &raw mut limits,
        )
    };
    answer == 0 && limits.rlim_max == mark.number()
}

/// The processes of this user that have not ended.
pub(super) fn processes() -> Vec<ProcessFacts> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| facts(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn facts(pid: i32) -> Option<ProcessFacts> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let (state, parent, threads) = (fields.first()?, fields.get(1)?, fields.get(17)?);
    if matches!(*state, "Z" | "X") {
        return None;
    }
    Some(ProcessFacts {
        pid: Pid::from_raw(pid)?,
        parent: parent.parse().ok()?,
        threads: threads.parse().ok()?,
    })
}
