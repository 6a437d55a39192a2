//! Memory and processor time of the bridge and its descendants, sampled in the background so that a request only reads
//! numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::settings::Limits;

#[cfg(target_os = "linux")]
#[path = "pressure/usage_linux.rs"]
mod usage;
#[cfg(not(target_os = "linux"))]
#[path = "pressure/usage_macos.rs"]
mod usage;

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
        let tree = usage::process_tree();
        self.memory_bytes
            .store(usage::memory_bytes(&tree), Ordering::Relaxed);
        self.load_milli
            .store(load_milli().unwrap_or(0), Ordering::Relaxed);
        // A process takes its time with it when it is not waited for; the sum must not go back for that.
        self.cpu_ms
            .fetch_max(tree.iter().copied().map(usage::cpu_ms).sum(), Ordering::Relaxed);
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a load average is small and positive"
)]
fn load_milli() -> Option<u64> {
    let load = usage::load_average()?;
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some((load * 1000.0) as u64 / cpus as u64)
}
