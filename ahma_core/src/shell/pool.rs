//! The pools of processes that wait for a call: warm shells, and processes that become a program.
//!
//! A pool is a plain structure that decides how many should wait; the launcher asks the jail for them. One is handed out
//! once and never comes back, so nothing leaks from one call to the next.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use crate::jail::wire::{self, Becomes, Report};

/// How many processes of a kind wait.
#[derive(Debug, Clone, Copy)]
pub struct PoolSettings {
    /// So many always.
    pub floor: usize,
    /// So many at most, after a burst.
    pub cap: usize,
    /// After this long without a call the pool shrinks by half.
    pub idle: Duration,
}

/// Each that waits holds descriptors, of which a process may have a thousand.
const MOST_WARM: usize = 32;

impl Default for PoolSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            floor: 2,
            cap: (4 * cores.max(1)).min(MOST_WARM),
            idle: Duration::from_secs(30),
        }
    }
}

/// Both pools. They grow and shrink apart: most clients use either the shell or tools.
#[derive(Debug)]
pub(super) struct Pools {
    shells: Pool,
    programs: Pool,
}

/// A process that waits on its script pipe.
#[derive(Debug)]
pub(super) struct Warm {
    /// Does not block.
    pub(super) control: OwnedFd,
    /// Whether its owner has said that it is there.
    pub(super) begun: bool,
    pub(super) script: OwnedFd,
    pub(super) output: OwnedFd,
}

#[derive(Debug)]
pub(super) struct Pool {
    settings: PoolSettings,
    waiting: VecDeque<Warm>,
    target: usize,
    last_taken: Instant,
}

impl Pools {
    pub(super) fn new(settings: PoolSettings, now: Instant) -> Self {
        // A program's start at call time costs little more than its waiting; a shell's costs a shell.
        let programs = PoolSettings {
            floor: settings.floor.min(1),
            ..settings
        };
        Self {
            shells: Pool::new(settings, now),
            programs: Pool::new(programs, now),
        }
    }

    pub(super) fn of(&mut self, becomes: Becomes) -> &mut Pool {
        match becomes {
            Becomes::Shell => &mut self.shells,
            Becomes::Program => &mut self.programs,
        }
    }

    /// What to ask for next. The emptier pool first.
    pub(super) fn missing(&self) -> Option<Becomes> {
        match (self.shells.missing(), self.programs.missing()) {
            (0, 0) => None,
            (shells, programs) if shells >= programs => Some(Becomes::Shell),
            _ => Some(Becomes::Program),
        }
    }

    pub(super) fn tend(&mut self, now: Instant) {
        self.shells.tend(now);
        self.programs.tend(now);
    }

    /// Whether a call would have to wait for a start.
    pub(super) fn has_empty(&self) -> bool {
        self.shells.waiting.is_empty() || self.programs.waiting.is_empty()
    }

    /// Drops all that wait; others are asked for in their place.
    pub(super) fn empty(&mut self) {
        self.shells.waiting.clear();
        self.programs.waiting.clear();
    }

    /// Drops all that wait, for good.
    pub(super) fn clear(&mut self) {
        self.shells.clear();
        self.programs.clear();
    }
}

impl Pool {
    fn new(settings: PoolSettings, now: Instant) -> Self {
        let settings = PoolSettings {
            cap: settings.cap.max(settings.floor),
            ..settings
        };
        Self {
            target: settings.floor,
            settings,
            waiting: VecDeque::new(),
            last_taken: now,
        }
    }

    /// Hands out the one that has waited longest. Dead ones are thrown away. An empty pool grows.
    pub(super) fn take(&mut self, now: Instant) -> Option<Warm> {
        self.last_taken = now;
        while let Some(mut warm) = self.waiting.pop_front() {
            if warm.is_waiting() {
                return Some(warm);
            }
        }
        self.target = (self.target * 2).max(1).min(self.settings.cap);
        None
    }

    /// Takes one that was asked for. A pool that was closed meanwhile drops it, which ends it: nobody would else.
    pub(super) fn add(&mut self, warm: Warm) {
        if self.target > 0 {
            self.waiting.push_back(warm);
        }
    }

    /// How many to ask for now.
    fn missing(&self) -> usize {
        self.target.saturating_sub(self.waiting.len())
    }

    /// Shrinks after idle time and drops those that died or are too many. Dropping one ends its processes.
    fn tend(&mut self, now: Instant) {
        if now.duration_since(self.last_taken) >= self.settings.idle && self.target > self.settings.floor {
            self.target = (self.target / 2).max(self.settings.floor);
            self.last_taken = now;
        }
        self.waiting.retain_mut(Warm::is_waiting);
        self.waiting.truncate(self.target);
    }

    fn clear(&mut self) {
        self.target = 0;
        self.settings.cap = 0;
        self.waiting.clear();
    }
}

impl Warm {
    /// Whether the owner has said no more than that it is there: another report or a closed socket means that the
    /// process is gone.
    fn is_waiting(&mut self) -> bool {
        loop {
            match wire::receive_short(&self.control) {
                Ok(Some((Report::Begun, _))) => self.begun = true,
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
                Ok(_) => return false,
            }
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
