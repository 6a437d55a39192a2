//! Memory and time of processes, from the kernel of macOS.

use ahma_common::darwin;

/// This process and all below it. One that has left its parents counts no more, which the kernel of Linux prevents.
pub(super) fn process_tree() -> Vec<u32> {
    let all: Vec<_> = darwin::processes(None)
        .into_iter()
        .filter_map(darwin::facts)
        .collect();
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    let tree = darwin::with_descendants(ourselves, &all).into_iter();
    tree.filter_map(|pid| u32::try_from(pid).ok()).collect()
}

/// The footprint, as the system's own monitor shows it: memory of files, which processes share, is not in it.
pub(super) fn memory_bytes(processes: &[u32]) -> u64 {
    let usages = processes.iter().filter_map(|pid| usage(*pid));
    usages.map(|usage| usage.memory_bytes).sum()
}

/// The time of a process and of those it has waited for.
pub(super) fn cpu_ms(process: u32) -> u64 {
    usage(process).map_or(0, |usage| {
        u64::try_from(usage.cpu.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Of one minute.
pub(super) fn load_average() -> Option<f64> {
    darwin::load_average()
}

fn usage(process: u32) -> Option<darwin::ProcessUsage> {
    darwin::usage(i32::try_from(process).ok()?)
}
