//! Delays between attempts, which double up to a cap, with jitter, for a fixed number of retries.
//!
//! [`Retry`] is a state machine without a clock: its caller sleeps, and says how each attempt ended.

use std::time::Duration;

/// The rule by which attempts are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of retries in a row before giving up.
    pub max_retries: u32,
    pub first_delay: Duration,
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    /// Five retries within about half a minute: long enough for a restart, short enough for a waiting caller.
    fn default() -> Self {
        Self {
            max_retries: 5,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(15),
        }
    }
}

impl RetryPolicy {
    /// The wait before retry number `retry` (from 0), or `None` when all have been used.
    #[must_use]
    pub fn delay(&self, retry: u32) -> Option<Duration> {
        self.delay_with(retry, rand::random::<f64>())
    }

    /// Between half and all of the doubled delay: clients that lost the same server do not return in step.
    fn delay_with(&self, retry: u32, jitter: f64) -> Option<Duration> {
        let doubled = self.first_delay.saturating_mul(2_u32.saturating_pow(retry));
        (retry < self.max_retries).then(|| doubled.min(self.max_delay).mul_f64(0.5 + jitter / 2.0))
    }
}

/// The attempts made so far under one policy.
#[derive(Debug, Clone)]
pub struct Retry {
    policy: RetryPolicy,
    /// Failures since the last reset.
    failures: u32,
}

impl Retry {
    #[must_use]
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0 }
    }

    /// Records a failed attempt and gives the wait before the next one. `None` means to give up; it stays so until
    /// [`Retry::reset`].
    pub fn failed(&mut self) -> Option<Duration> {
        self.failed_with(rand::random::<f64>())
    }

    /// Starts over, after a success or because a new attempt was asked for: the next failure has the first delay again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    fn failed_with(&mut self, jitter: f64) -> Option<Duration> {
        let delay = self.policy.delay_with(self.failures, jitter);
        self.failures = self.failures.saturating_add(1);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 4,
        first_delay: Duration::from_secs(1),
        max_delay: Duration::from_secs(5),
    };

    enum Event {
        Fails,
        Resets,
    }

    #[test]
    fn each_event_has_its_delay() {
        use Event::{Fails, Resets};
        let table = [
            // (event, shortest and longest delay in milliseconds; none is giving up)
            (Fails, Some((500, 1000))),
            (Fails, Some((1000, 2000))),
            (Resets, None),
            (Fails, Some((500, 1000))),
            (Fails, Some((1000, 2000))),
            (Fails, Some((2000, 4000))),
            (Fails, Some((2500, 5000))),
            (Fails, None),
            (Fails, None),
            (Resets, None),
            (Fails, Some((500, 1000))),
        ];
        let (mut shortest, mut longest) = (Retry::new(POLICY), Retry::new(POLICY));
        for (step, (event, expected)) in table.into_iter().enumerate() {
            match event {
                Fails => {
                    let delays = (shortest.failed_with(0.0), longest.failed_with(1.0));
                    let (low, high) = expected.unzip();
                    assert_eq!(
                        delays,
                        (low.map(Duration::from_millis), high.map(Duration::from_millis)),
                        "step {step}"
                    );
                }
                Resets => {
                    shortest.reset();
                    longest.reset();
                }
            }
        }
    }

    #[test]
    fn nothing_overflows() {
        let policy = RetryPolicy {
            max_retries: u32::MAX,
            ..POLICY
        };
        assert_eq!(policy.delay_with(u32::MAX - 1, 1.0), Some(POLICY.max_delay));
        let mut retry = Retry {
            policy,
            failures: u32::MAX,
        };
        assert_eq!(retry.failed(), None);
        assert_eq!(retry.failures, u32::MAX);
    }
}
