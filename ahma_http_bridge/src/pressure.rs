//! How much memory and processor the bridge and its children use, from cgroup or /proc, sampled in the
//! background so that a request only reads numbers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::settings::Limits;

#[derive(Debug, Default)]
pub(crate) struct Pressure {
    memory_bytes: AtomicU64,
    /// Load average of one minute per processor, in thousandths.
    load_milli: AtomicU64,
}

impl Pressure {
    /// Looks again. `children` are process ids whose memory counts when no cgroup tells.
    pub(crate) fn sample(&self, children: &[u32]) {
        let memory = cgroup_memory().unwrap_or_else(|| {
            resident_bytes("self")
                + children
                    .iter()
                    .map(|pid| resident_bytes(&pid.to_string()))
                    .sum::<u64>()
        });
        self.memory_bytes.store(memory, Ordering::Relaxed);
        self.load_milli
            .store(load_milli().unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    #[expect(clippy::cast_precision_loss, reason = "a load average is small")]
    pub(crate) fn load_per_cpu(&self) -> f64 {
        self.load_milli.load(Ordering::Relaxed) as f64 / 1000.0
    }

    /// Why no new work is taken, if so.
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

/// The memory of our cgroup, if it is one of its own and not the whole machine.
fn cgroup_memory() -> Option<u64> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    if path == "/" {
        return None;
    }
    let file = PathBuf::from(format!("/sys/fs/cgroup{path}/memory.current"));
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn resident_bytes(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
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
