//! Usage of an operation while it ran: samples over its whole life, however long that is.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::jail::ProcessUsage;

/// Time between the first samples.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);

/// Samples of one operation. Once there are more, every other one is dropped and they are taken half as often.
const MAX_SAMPLES: usize = 240;

/// Usage of an operation up to one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageSample {
    /// Milliseconds since it began.
    pub(crate) at_ms: u64,
    /// Processor time so far, in milliseconds.
    pub(crate) cpu_ms: u64,
    pub(crate) memory_bytes: u64,
}

impl UsageSample {
    /// Processors that were busy between two samples.
    pub(crate) fn processors_since(self, before: Self) -> f64 {
        let time = self.at_ms.saturating_sub(before.at_ms).max(1);
        self.cpu_ms.saturating_sub(before.cpu_ms) as f64 / time as f64
    }
}

/// The samples of an operation that runs.
#[derive(Debug)]
pub(super) struct UsageLog {
    samples: Vec<UsageSample>,
    interval: Duration,
    due: Instant,
}

impl UsageLog {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            samples: Vec::new(),
            interval: FIRST_INTERVAL,
            due: now,
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due <= now
    }

    pub(super) fn add(&mut self, now: Instant, elapsed: Duration, used: ProcessUsage) {
        self.due = now + self.interval;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        // Processes that have ended are no longer counted, but have used their time.
        let before = self.samples.last().map_or(0, |sample| sample.cpu_ms);
        self.samples.push(UsageSample {
            at_ms: millis(elapsed),
            cpu_ms: millis(used.cpu).max(before),
            memory_bytes: used.memory_bytes,
        });
        if self.samples.len() > MAX_SAMPLES {
            let mut is_kept = false;
            self.samples.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.interval *= 2;
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(&self.samples).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_life_is_kept_in_few_samples_and_from_end_to_end() {
        let start = Instant::now();
        let mut log = UsageLog::new(start);
        let (mut now, end) = (start, start + Duration::from_secs(100_000));
        while now < end {
            if log.is_due(now) {
                let elapsed = now - start;
                let used = ProcessUsage {
                    cpu: elapsed / 2,
                    memory_bytes: 1,
                };
                log.add(now, elapsed, used);
            }
            now += Duration::from_millis(500);
        }
        assert!(log.samples.len() <= MAX_SAMPLES, "{}", log.samples.len());
        let (first, last) = (log.samples[0], *log.samples.last().unwrap());
        assert!(
            first.at_ms < 1_000_000 && last.at_ms > 98_000_000,
            "{first:?} {last:?}"
        );
        assert!((last.processors_since(first) - 0.5).abs() < 0.01);
        let read: Vec<UsageSample> = serde_json::from_str(&log.to_json()).unwrap();
        assert_eq!(read, log.samples);
    }
}
