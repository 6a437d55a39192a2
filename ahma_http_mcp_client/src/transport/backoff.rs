//! How long to wait before trying again: doubling, capped, with jitter, a fixed number of times.

use std::time::Duration;

/// The retry rule of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a lost connection is tried again before the server counts as down.
    pub max_retries: u32,
    pub first_delay: Duration,
    pub longest_delay: Duration,
}

impl Default for RetryPolicy {
    /// Five retries within about half a minute: long enough for a restart, short enough for a waiting caller.
    fn default() -> Self {
        Self {
            max_retries: 5,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(15),
        }
    }
}

impl RetryPolicy {
    /// The wait before retry number `retry` (from 0), or `None` when all have been used.
    pub(crate) fn delay(&self, retry: u32) -> Option<Duration> {
        (retry < self.max_retries).then(|| self.spread(retry, rand::random::<f64>()))
    }

    /// Between half and all of the doubled delay: clients that lost the same server do not return in step.
    fn spread(&self, retry: u32, random: f64) -> Duration {
        let doubled = self.first_delay.saturating_mul(2_u32.saturating_pow(retry));
        doubled.min(self.longest_delay).mul_f64(0.5 + random / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap_and_then_ends() {
        let policy = RetryPolicy {
            max_retries: 4,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(5),
        };
        let bounds = [(500, 1000), (1000, 2000), (2000, 4000), (2500, 5000)];
        for (retry, (shortest, longest)) in (0..).zip(bounds) {
            assert_eq!(policy.spread(retry, 0.0), Duration::from_millis(shortest));
            assert_eq!(policy.spread(retry, 1.0), Duration::from_millis(longest));
        }
        assert!(policy.delay(3).is_some());
        assert_eq!(policy.delay(4), None);
    }
}
