//! The pool of warm shells.
//!
//! The pool itself is a plain structure that decides how many shells should wait; the launcher asks the jail for them.
//! A shell is handed out once and never comes back, so nothing leaks from one call to the next.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::net::RecvFlags;

/// How many shells wait.
#[derive(Debug, Clone, Copy)]
pub struct PoolSettings {
    /// So many always.
    pub floor: usize,
    /// So many at most, after a burst.
    pub cap: usize,
    /// After this long without a call the pool shrinks by half.
    pub idle: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            floor: 2,
            cap: 4 * cores.max(1),
            idle: Duration::from_secs(30),
        }
    }
}

/// A shell that waits for its script.
#[derive(Debug)]
pub(super) struct WarmShell {
    pub(super) control: OwnedFd,
    pub(super) script: OwnedFd,
    pub(super) output: OwnedFd,
}

#[derive(Debug)]
pub(super) struct Pool {
    settings: PoolSettings,
    waiting: VecDeque<WarmShell>,
    target: usize,
    last_taken: Instant,
}

impl Pool {
    pub(super) fn new(settings: PoolSettings, now: Instant) -> Self {
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

    /// Hands out the shell that has waited longest. Dead ones are thrown away. An empty pool grows.
    pub(super) fn take(&mut self, now: Instant) -> Option<WarmShell> {
        self.last_taken = now;
        while let Some(shell) = self.waiting.pop_front() {
            if shell.is_waiting() {
                return Some(shell);
            }
        }
        self.target = (self.target * 2).clamp(1, self.settings.cap.max(1));
        None
    }

    pub(super) fn add(&mut self, shell: WarmShell) {
        self.waiting.push_back(shell);
    }

    /// How many shells to ask for now.
    pub(super) fn missing(&self) -> usize {
        self.target.saturating_sub(self.waiting.len())
    }

    /// Shrinks after idle time and drops shells that died or are too many. Dropping one ends its processes.
    pub(super) fn tend(&mut self, now: Instant) {
        if now.duration_since(self.last_taken) >= self.settings.idle && self.target > self.settings.floor {
            self.target = (self.target / 2).max(self.settings.floor);
            self.last_taken = now;
        }
        self.waiting.retain(WarmShell::is_waiting);
        self.waiting.truncate(self.target);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.target = 0;
        self.settings.cap = 0;
        self.waiting.clear();
    }
}

impl WarmShell {
    /// Whether the owner has nothing to say yet: a report or a closed socket means that the shell is gone.
    fn is_waiting(&self) -> bool {
        let mut byte = [0_u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(
            rustix::net::recv(&self.control, &mut byte, flags),
            Err(rustix::io::Errno::AGAIN)
        )
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
