//! Load and memory of this machine over the last minutes.

use std::{collections::VecDeque, fs, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Time between two samples.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// Samples that are kept: ten minutes.
pub(super) const SAMPLES: usize = 60;

#[derive(Debug, Default)]
pub(super) struct Machine {
    /// The newest last.
    samples: Mutex<VecDeque<MachineSample>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct MachineSample {
    /// Processes that want a processor, over the last minute.
    pub(super) load: f64,
    /// Share of memory in use.
    pub(super) memory: f64,
}

impl Machine {
    pub(super) async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(INTERVAL);
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let Some(sample) = MachineSample::now() else {
                return;
            };
            let mut samples = self.samples.lock();
            if samples.len() >= SAMPLES {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
    }

    pub(super) fn samples(&self) -> Vec<MachineSample> {
        self.samples.lock().iter().copied().collect()
    }
}

impl MachineSample {
    /// None where the kernel does not tell.
    fn now() -> Option<Self> {
        let load = fs::read_to_string("/proc/loadavg").ok()?;
        let memory = fs::read_to_string("/proc/meminfo").ok()?;
        let of = |name: &str| -> Option<f64> {
            let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        };
        Some(Self {
            load: load.split_ascii_whitespace().next()?.parse().ok()?,
            memory: 1.0 - of("MemAvailable:")? / of("MemTotal:")?.max(1.0),
        })
    }
}
