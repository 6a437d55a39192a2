//! Which ended operations are forgotten.
//!
//! The oldest go first, but one whose result nobody has seen yet is worth more than one already delivered: a client that
//! starts a thousand operations and then asks for all of them must find all of them.

use std::collections::VecDeque;

use super::queue::Ticket;

/// How many times `max_entries` unseen results are kept before they are forgotten too.
const UNSEEN_FACTOR: usize = 4;

/// Ended operations, oldest first.
#[derive(Debug)]
pub(super) struct History {
    max_entries: usize,
    max_bytes: u64,
    bytes: u64,
    entries: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    bytes: u64,
}

impl History {
    pub(super) fn new(max_entries: usize, max_bytes: u64) -> Self {
        Self {
            max_entries,
            max_bytes,
            bytes: 0,
            entries: VecDeque::new(),
        }
    }

    /// Remembers an ended operation that holds `bytes` on disk; says whom to forget for it.
    pub(super) fn push(&mut self, ticket: Ticket, bytes: u64, seen: impl Fn(Ticket) -> bool) -> Vec<Ticket> {
        self.entries.push_back(Entry { ticket, bytes });
        self.bytes += bytes;

        let mut forgotten = Vec::new();
        while self.entries.len() > self.max_entries {
            let Some(place) = self.entries.iter().position(|entry| seen(entry.ticket)) else {
                break;
            };
            self.forget(place, &mut forgotten);
        }
        while self.entries.len() > self.max_entries.saturating_mul(UNSEEN_FACTOR) {
            self.forget(0, &mut forgotten);
        }
        // Disk is the hard limit: unseen or not, but never the newcomer, whose size the quota bounds.
        while self.bytes > self.max_bytes && self.entries.len() > 1 {
            let last = self.entries.len() - 1;
            let candidates = || {
                self.entries
                    .iter()
                    .take(last)
                    .enumerate()
                    .filter(|(_, entry)| entry.bytes > 0)
            };
            let place = candidates()
                .find(|(_, entry)| seen(entry.ticket))
                .or_else(|| candidates().next())
                .map(|(place, _)| place);
            let Some(place) = place else { break };
            self.forget(place, &mut forgotten);
        }
        forgotten
    }

    fn forget(&mut self, place: usize, forgotten: &mut Vec<Ticket>) {
        if let Some(entry) = self.entries.remove(place) {
            self.bytes -= entry.bytes;
            forgotten.push(entry.ticket);
        }
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
