//! Decides which ended operations are forgotten.
//!
//! The oldest go first, but one whose result is not delivered yet is worth more than one that is: a client that
//! starts a thousand operations and then asks for all of them must find all of them. Where only memory is short, an
//! operation stays and loses the findings that its result does not carry.

use std::collections::VecDeque;

use super::queue::Ticket;

/// Multiple of `max_entries` up to which undelivered results are kept.
const UNSEEN_FACTOR: usize = 4;

/// Ended operations, oldest first.
#[derive(Debug)]
pub(super) struct Remembered {
    limits: RememberedLimits,
    held: HeldBytes,
    entries: VecDeque<RememberedEntry>,
}

/// Limits on what is remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct RememberedLimits {
    pub(super) entries: usize,
    pub(super) bytes: HeldBytes,
}

/// Bytes that ended operations take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeldBytes {
    /// On disk.
    pub(super) spooled: u64,
    /// In memory, for findings that no result carries.
    pub(super) findings: u64,
}

/// Operations that make room for a new one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Evictions {
    /// To be forgotten.
    pub(super) forgotten: Vec<Ticket>,
    /// To lose findings.
    pub(super) shortened: Vec<Ticket>,
}

#[derive(Debug)]
struct RememberedEntry {
    ticket: Ticket,
    held: HeldBytes,
}

impl Remembered {
    pub(super) fn new(limits: RememberedLimits) -> Self {
        Self {
            limits,
            held: HeldBytes::default(),
            entries: VecDeque::new(),
        }
    }

    /// Remembers an ended operation, and returns those that make room for it.
    pub(super) fn push(
        &mut self,
        ticket: Ticket,
        held: HeldBytes,
        seen: impl Fn(Ticket) -> bool,
    ) -> Evictions {
        self.entries.push_back(RememberedEntry { ticket, held });
        self.held.spooled += held.spooled;
        self.held.findings += held.findings;

        let mut evictions = Evictions::default();
        while self.entries.len() > self.limits.entries {
            let Some(place) = self.entries.iter().position(|entry| seen(entry.ticket)) else {
                break;
            };
            self.forget(place, &mut evictions);
        }
        while self.entries.len() > self.limits.entries.saturating_mul(UNSEEN_FACTOR) {
            self.forget(0, &mut evictions);
        }
        // Disk and memory are the hard limits: unseen or not, but never the newest entry, which has a bound of its own.
        while self.held.spooled > self.limits.bytes.spooled {
            let Some(place) = self.oldest_with(|held| held.spooled, &seen) else {
                break;
            };
            self.forget(place, &mut evictions);
        }
        while self.held.findings > self.limits.bytes.findings {
            let Some(place) = self.oldest_with(|held| held.findings, &seen) else {
                break;
            };
            self.shorten(place, &mut evictions);
        }
        evictions
    }

    /// The oldest entry but the newest that holds anything of a kind; one that was seen, if there is one.
    fn oldest_with(&self, amount: fn(&HeldBytes) -> u64, seen: impl Fn(Ticket) -> bool) -> Option<usize> {
        let others = self.entries.len().saturating_sub(1);
        let candidates = || {
            let entries = self.entries.iter().take(others).enumerate();
            entries.filter(|(_, entry)| amount(&entry.held) > 0)
        };
        candidates()
            .find(|(_, entry)| seen(entry.ticket))
            .or_else(|| candidates().next())
            .map(|(place, _)| place)
    }

    fn forget(&mut self, place: usize, evictions: &mut Evictions) {
        if let Some(entry) = self.entries.remove(place) {
            self.held.spooled -= entry.held.spooled;
            self.held.findings -= entry.held.findings;
            evictions.forgotten.push(entry.ticket);
        }
    }

    fn shorten(&mut self, place: usize, evictions: &mut Evictions) {
        if let Some(entry) = self.entries.get_mut(place) {
            self.held.findings -= std::mem::take(&mut entry.held.findings);
            evictions.shortened.push(entry.ticket);
        }
    }
}

#[cfg(test)]
#[path = "remembered_tests.rs"]
mod tests;
