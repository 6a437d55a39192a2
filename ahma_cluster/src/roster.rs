//! The workers of a pool, as far as their heartbeats tell.

use std::{collections::HashMap, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// A worker's report on itself, every fifth of a lease. It is not stored: writes to a stream stall while its leader is
/// replaced, and then live workers would look dead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Name of this run of the worker; another after every start.
    pub worker: String,
    pub host: String,
    pub version: String,
    #[serde(default)]
    pub labels: Vec<String>,
    /// Operations it can run at once, and runs now.
    pub slots: usize,
    pub running: usize,
    /// Changes with the tools it offers.
    pub catalog: String,
    /// It takes nothing new.
    #[serde(default)]
    pub draining: bool,
}

/// Workers that were heard of within the lease.
#[derive(Debug)]
pub struct Roster {
    lease: Duration,
    seen: HashMap<String, Seen>,
    /// Silence before this says nothing about a worker: we were not listening.
    listening_since: Instant,
}

#[derive(Debug)]
struct Seen {
    beat: Beat,
    at: Instant,
}

impl Roster {
    pub fn new(lease: Duration, now: Instant) -> Self {
        Self {
            lease,
            seen: HashMap::new(),
            listening_since: now,
        }
    }

    /// Takes a beat. True if it tells something new about the tools of the pool.
    pub fn take(&mut self, beat: Beat, now: Instant) -> bool {
        let said = (beat.catalog.clone(), beat.draining);
        let before = self.seen.insert(beat.worker.clone(), Seen { beat, at: now });
        before.is_none_or(|before| (before.beat.catalog, before.beat.draining) != said)
    }

    /// Notes that beats may have been missed until now.
    pub fn was_deaf(&mut self, now: Instant) {
        self.listening_since = now;
    }

    /// True if nothing was heard of a worker for a lease, although we listened, and it is that long since its claim was
    /// noticed.
    pub fn has_lost(&self, worker: &str, claim_noticed: Instant, now: Instant) -> bool {
        let heard = self
            .seen
            .get(worker)
            .map_or(claim_noticed, |seen| seen.at.max(claim_noticed));
        let quiet_since = heard.max(self.listening_since);
        now.saturating_duration_since(quiet_since) > self.lease
    }

    /// Forgets workers that are silent. True if there were any.
    pub fn forget_silent(&mut self, now: Instant) -> bool {
        let count = self.seen.len();
        let (lease, since) = (self.lease, self.listening_since);
        self.seen
            .retain(|_, seen| now.saturating_duration_since(seen.at.max(since)) <= lease);
        self.seen.len() < count
    }

    /// The workers, by name.
    pub fn workers(&self) -> Vec<&Beat> {
        let mut workers: Vec<&Beat> = self.seen.values().map(|seen| &seen.beat).collect();
        workers.sort_by(|one, other| one.worker.cmp(&other.worker));
        workers
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
mod tests;
