//! Signalling all processes below this one.
//!
//! The walk reads the kernel's lists of children as they are. The `procfs` crate reads the same files, but parses a whole
//! `stat` for each process on the way; a sweep races the processes it kills.

use std::fs;

use rustix::process::{Pid, Signal};

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
