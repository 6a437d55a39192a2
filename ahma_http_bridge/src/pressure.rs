//! Memory and processor time of the bridge and its descendants, from /proc, sampled in the
//! background so that a request only reads numbers. A few numbers of `/proc` do not need `procfs`, which is a
//! large parser.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::settings::Limits;

#[derive(Debug, Default)]
pub(crate) struct Pressure {
    memory_bytes: AtomicU64,
    /// Load average of one minute per processor, in thousandths.
    load_milli: AtomicU64,
    /// Processor time used so far.
    cpu_ms: AtomicU64,
}

impl Pressure {
    /// Looks again.
    pub(crate) fn sample(&self) {
        let tree = process_tree();
        self.memory_bytes.store(memory_bytes(&tree), Ordering::Relaxed);
        self.load_milli
            .store(load_milli().unwrap_or(0), Ordering::Relaxed);
        // A process takes its time with it when it is not waited for; the sum must not go back for that.
        self.cpu_ms
            .fetch_max(tree.iter().copied().map(cpu_ms).sum(), Ordering::Relaxed);
    }

    pub(crate) fn cpu_time(&self) -> Duration {
        Duration::from_millis(self.cpu_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    #[expect(clippy::cast_precision_loss, reason = "a load average is small")]
    pub(crate) fn load_per_cpu(&self) -> f64 {
        self.load_milli.load(Ordering::Relaxed) as f64 / 1000.0
    }

    /// The reason why no new work is taken, if there is one.
    pub(crate) fn over(&self, limits: &Limits) -> Option<&'static str> {
        if limits
            .memory_bytes
            .is_some_and(|limit| self.memory_bytes() > limit)
        {
            return Some("the server is short of memory; open sessions go on, try again later");
        }
        if limits
            .load_per_cpu
            .is_some_and(|limit| self.load_per_cpu() > limit)
        {
            return Some("the server is busy; open sessions go on, try again later");
        }
        None
    }
}

/// This process and all below it.
fn process_tree() -> Vec<u32> {
    let mut tree = vec![std::process::id()];
    let mut next = 0;
    while let Some(&process) = tree.get(next) {
        next += 1;
        let threads = std::fs::read_dir(format!("/proc/{process}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            // A child is listed with the thread that started it.
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            tree.extend(
                children
                    .split_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            );
        }
    }
    tree
}

/// The proportional set size: memory that several processes share is counted once in the sum.
fn memory_bytes(processes: &[u32]) -> u64 {
    let (mut sum, mut shared) = (0, 0);
    for process in processes
        .iter()
        .filter(|process| !is_in_memory_of_parent(**process))
    {
        match field_bytes(*process, "smaps_rollup", "Pss:") {
            Some(proportional) => sum += proportional,
            // Only root may look into a server, which is closed to others. They all run the same program, so the largest
            // share of its files stands for all.
            None => {
                let of_status = |field: &str| field_bytes(*process, "status", field).unwrap_or(0);
                sum += of_status("RssAnon:") + of_status("RssShmem:");
                shared = of_status("RssFile:").max(shared);
            }
        }
    }
    sum + shared
}

/// The supervisor of a shell runs in the memory of its parent, which is counted with that one: they have the same sizes, and
/// the same command line, which lies in it. A copy of a memory has the same command line and other sizes.
fn is_in_memory_of_parent(process: u32) -> bool {
    let read = |process: u32, file: &str| std::fs::read(format!("/proc/{process}/{file}")).ok();
    let is_same = |one: u32, other: u32, file: &str| {
        let of_one = read(one, file);
        of_one.is_some() && of_one == read(other, file)
    };
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let parent = stat
        .rsplit_once(')')
        .and_then(|(_, fields)| fields.split_whitespace().nth(1)?.parse().ok());
    parent.is_some_and(|parent| is_same(process, parent, "statm") && is_same(process, parent, "cmdline"))
}

fn field_bytes(process: u32, file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().ok()?;
    Some(kilobytes * 1024)
}

/// The time of a process and of those it has waited for.
fn cpu_ms(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name before it may hold anything, a parenthesis too. The times are fields 14 to 17.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a load average is small and positive"
)]
fn load_milli() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some((load * 1000.0) as u64 / cpus as u64)
}

#[cfg(test)]
#[path = "pressure_tests.rs"]
mod tests;
