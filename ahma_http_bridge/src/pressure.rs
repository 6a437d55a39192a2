//! Memory and processor time of the bridge and its descendants, sampled in the background so that a request only reads
//! numbers.

use std::time::Duration;

use parking_lot::Mutex;

use crate::settings::Limits;

#[cfg(target_os = "linux")]
#[path = "pressure/usage_linux.rs"]
mod usage;
#[cfg(not(target_os = "linux"))]
#[path = "pressure/usage_macos.rs"]
mod usage;

#[derive(Debug, Default)]
pub(crate) struct Pressure(Mutex<PressureSample>);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PressureSample {
    pub(crate) memory_bytes: u64,
    /// Load average of one minute per processor.
    pub(crate) load_per_cpu: f64,
    /// Processor time used so far.
    pub(crate) cpu: Duration,
}

impl Pressure {
    /// Reads the system's figures again.
    pub(crate) fn refresh(&self) {
        let tree = usage::process_tree();
        let memory_bytes = usage::memory_bytes(&tree);
        let cpu = Duration::from_millis(tree.iter().copied().map(usage::cpu_ms).sum());
        let mut sample = self.0.lock();
        *sample = PressureSample {
            memory_bytes,
            load_per_cpu: load_per_cpu(),
            // A process takes its time with it when it is not waited for; the sum must not go back for that.
            cpu: cpu.max(sample.cpu),
        };
    }

    /// The last figures.
    pub(crate) fn sample(&self) -> PressureSample {
        *self.0.lock()
    }

    /// The reason why no new work is taken, if there is one.
    pub(crate) fn over(&self, limits: &Limits) -> Option<&'static str> {
        let sample = self.sample();
        if limits
            .memory_bytes
            .is_some_and(|limit| sample.memory_bytes > limit)
        {
            return Some("the server is short of memory; open sessions go on, try again later");
        }
        if limits
            .load_per_cpu
            .is_some_and(|limit| sample.load_per_cpu > limit)
        {
            return Some("the server is busy; open sessions go on, try again later");
        }
        None
    }
}

fn load_per_cpu() -> f64 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    usage::load_average().unwrap_or(0.0) / cpus as f64
}
