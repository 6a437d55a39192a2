//! The pools of idle processes: shells, and processes that become a program.
//!
//! A pool is a plain structure that decides how many should be idle; the launcher requests them. A process is handed out
//! once and never comes back, so nothing leaks from one call to the next.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::idle_process::IdleProcess;
use crate::jail::wire::ProcessKind;

/// Number of idle processes of a kind.
#[derive(Debug, Clone, Copy)]
pub struct PoolSettings {
    /// Kept always.
    pub floor: usize,
    /// Kept as long as calls come.
    pub busy: usize,
    /// Kept at most, after a burst.
    pub cap: usize,
    /// After this long without a call the pool shrinks by half.
    pub idle: Duration,
}

/// A client that calls again within this time does not pause between its calls.
const PAUSE: Duration = Duration::from_millis(5);

/// After this long without a call none is expected soon.
const QUIET: Duration = Duration::from_secs(5);

/// Each holds descriptors, of which a process may have a thousand.
const MAX_IDLE: usize = 32;

impl Default for PoolSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            floor: 2,
            busy: 2,
            cap: (4 * cores.max(1)).min(MAX_IDLE),
            idle: Duration::from_secs(30),
        }
    }
}

impl PoolSettings {
    /// For one of many servers, most of which wait for their clients: nothing is kept before the first call, nor long after
    /// the last one, and more than one process only for a client that does not pause.
    #[must_use]
    pub fn on_demand() -> Self {
        Self {
            floor: 0,
            busy: 1,
            idle: Duration::from_secs(5),
            ..Self::default()
        }
    }
}

/// Both pools. They grow and shrink apart: most clients use either the shell or tools.
#[derive(Debug)]
pub(super) struct Pools {
    shells: Pool,
    programs: Pool,
    last_taken: Instant,
    client_pauses: bool,
    is_quiet: bool,
}

#[derive(Debug)]
pub(super) struct Pool {
    settings: PoolSettings,
    idle: VecDeque<IdleProcess>,
    target: usize,
    last_taken: Instant,
}

impl Pools {
    pub(super) fn new(settings: PoolSettings, now: Instant) -> Self {
        // Starting one of these at call time costs little; starting a shell costs a shell.
        let programs = PoolSettings {
            floor: settings.floor.min(1),
            busy: settings.busy.min(1),
            ..settings
        };
        Self {
            shells: Pool::new(settings, now),
            programs: Pool::new(programs, now),
            last_taken: now,
            client_pauses: true,
            is_quiet: false,
        }
    }

    /// Hands out one of a kind, if one is there.
    pub(super) fn take(&mut self, kind: ProcessKind, now: Instant) -> Option<IdleProcess> {
        self.client_pauses = now.duration_since(self.last_taken) >= PAUSE;
        self.last_taken = now;
        self.is_quiet = false;
        self.of(kind).take(now)
    }

    /// The last call came a while after the one before.
    pub(super) fn client_pauses(&self) -> bool {
        self.client_pauses
    }

    pub(super) fn of(&mut self, kind: ProcessKind) -> &mut Pool {
        match kind {
            ProcessKind::Shell => &mut self.shells,
            ProcessKind::Program => &mut self.programs,
        }
    }

    /// The kind to request next: that of the emptier pool.
    pub(super) fn missing(&self) -> Option<ProcessKind> {
        match (self.shells.missing(), self.programs.missing()) {
            (0, 0) => None,
            (shells, programs) if shells >= programs => Some(ProcessKind::Shell),
            _ => Some(ProcessKind::Program),
        }
    }

    pub(super) fn tend(&mut self, now: Instant) {
        self.shells.tend(now);
        self.programs.tend(now);
    }

    /// No call has come for a while; true once until the next one.
    pub(super) fn fell_quiet(&mut self, now: Instant) -> bool {
        let was_quiet = self.is_quiet;
        self.is_quiet |= now.duration_since(self.last_taken) >= QUIET;
        self.is_quiet && !was_quiet
    }

    /// The next call may have to wait for a start.
    pub(super) fn has_empty(&self) -> bool {
        self.shells.is_empty() || self.programs.is_empty()
    }

    /// Drops all idle processes; others are requested in their place.
    pub(super) fn empty(&mut self) {
        self.shells.idle.clear();
        self.programs.idle.clear();
    }

    /// Drops all idle processes, for good.
    pub(super) fn close(&mut self) {
        self.shells.close();
        self.programs.close();
    }
}

impl Pool {
    fn new(settings: PoolSettings, now: Instant) -> Self {
        let settings = PoolSettings {
            busy: settings.busy.max(settings.floor),
            cap: settings.cap.max(settings.floor).max(settings.busy),
            ..settings
        };
        Self {
            target: settings.floor,
            settings,
            idle: VecDeque::new(),
            last_taken: now,
        }
    }

    /// Hands out the oldest. Dead ones are dropped. An empty pool grows.
    fn take(&mut self, now: Instant) -> Option<IdleProcess> {
        self.last_taken = now;
        let was_resting = self.target < self.settings.busy;
        self.target = self.target.max(self.settings.busy).min(self.settings.cap);
        while let Some(mut process) = self.idle.pop_front() {
            if process.is_alive() {
                return Some(process);
            }
        }
        if !was_resting {
            self.target = (self.target * 2).max(1).min(self.settings.cap);
        }
        None
    }

    /// Some are wanted, and none is there.
    fn is_empty(&self) -> bool {
        self.target > 0 && self.idle.is_empty()
    }

    /// Takes one that was requested. A pool that was closed meanwhile drops it, which ends it.
    pub(super) fn add(&mut self, process: IdleProcess) {
        if self.target > 0 {
            self.idle.push_back(process);
        }
    }

    /// Number to request now.
    fn missing(&self) -> usize {
        self.target.saturating_sub(self.idle.len())
    }

    /// Shrinks after idle time and drops processes that died or are too many. Dropping one ends it.
    fn tend(&mut self, now: Instant) {
        if now.duration_since(self.last_taken) >= self.settings.idle && self.target > self.settings.floor {
            self.target = (self.target / 2).max(self.settings.floor);
            self.last_taken = now;
        }
        self.idle.retain_mut(IdleProcess::is_alive);
        self.idle.truncate(self.target);
    }

    fn close(&mut self) {
        self.target = 0;
        self.settings.busy = 0;
        self.settings.cap = 0;
        self.idle.clear();
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
