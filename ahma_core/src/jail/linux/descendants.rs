//! Signalling all processes below this one.
//!
//! The walk reads the kernel's lists of children as they are. The `procfs` crate reads the same files, but parses a whole
//! `stat` for each process on the way; a sweep races the processes it kills.

use std::{fs, mem::MaybeUninit};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RawDir},
    process::{Pid, Signal},
};

use super::stack_text::StackText;

/// Signals every process below this one. Those that are born meanwhile are missed.
pub(in crate::jail) fn signal_descendants(signal: Signal) {
    // Listed first: the children of one that ends at the signal would not be found below it.
    let mut descendants = Vec::new();
    walk_descendants(|pid| descendants.push(pid));
    for pid in descendants {
        rustix::process::kill_process(pid, signal).ok();
    }
}

/// Kills every process below this one. Some that are born meanwhile may be missed: callers repeat until nothing is left.
pub(in crate::jail) fn kill_descendants() {
    // Each before its children are listed: a process with a pending KILL cannot fork any more, so its list is final, or
    // it is gone and its children are ours for the next sweep.
    walk_descendants(|pid| {
        rustix::process::kill_process(pid, Signal::KILL).ok();
    });
}

/// Number of processes and threads below this one.
pub(in crate::jail) fn count_tasks() -> usize {
    let mut tasks = 0;
    walk_descendants(|pid| {
        let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
        // One that ended meanwhile is still to be collected.
        tasks += threads.map_or(1, Iterator::count);
    });
    tasks
}

/// Number of processes and threads in this pid namespace besides its first process, which calls this. Allocates no memory.
pub(in crate::jail) fn count_tasks_of_namespace() -> usize {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = rustix::fs::open("/proc", flags, Mode::empty()) else {
        return 0;
    };
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&proc, &mut buffer);
    let mut tasks = 0;
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_bytes();
        if name.iter().all(u8::is_ascii_digit) && name != b"1" {
            // A directory has a link from itself, from its name, and from each directory in it.
            let name = str::from_utf8(name).unwrap_or_default();
            let threads = StackText::<32>::of(format_args!("{name}/task"));
            let links = rustix::fs::statat(&proc, threads.as_str(), AtFlags::empty());
            // One that ended meanwhile is still to be collected.
            tasks += links.map_or(1, |found| (found.st_nlink as usize).saturating_sub(2).max(1));
        }
    }
    tasks
}

fn walk_descendants(mut visit: impl FnMut(Pid)) {
    let mut unvisited = children_of(rustix::process::getpid());
    while let Some(pid) = unvisited.pop() {
        visit(pid);
        unvisited.extend(children_of(pid));
    }
}

/// The children of a process, of all its threads.
pub(in crate::jail) fn children_of(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = listed.split_ascii_whitespace();
        children.extend(pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    children
}

#[cfg(test)]
#[path = "descendants_tests.rs"]
mod tests;
