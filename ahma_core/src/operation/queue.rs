//! Who may run, and who is next: strictly first come, first served.

use std::collections::VecDeque;

/// Counted up by the registry with every operation, so the waiting line is always sorted.
pub(super) type Ticket = u64;

/// Places to run, and the line before them.
#[derive(Debug)]
pub(super) struct Queue {
    free: usize,
    max_waiting: usize,
    waiting: VecDeque<Ticket>,
}

/// The answer to a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Run,
    Wait,
    Refused,
}

impl Queue {
    pub(super) fn new(places: usize, max_waiting: usize) -> Self {
        Self {
            free: places.max(1),
            max_waiting,
            waiting: VecDeque::new(),
        }
    }

    /// A newcomer; tickets must rise from call to call.
    pub(super) fn enter(&mut self, ticket: Ticket) -> Admission {
        debug_assert!(self.waiting.back().is_none_or(|&last| last < ticket));
        if self.free > 0 {
            // A place is free only while nobody waits.
            self.free -= 1;
            return Admission::Run;
        }
        if self.waiting.len() >= self.max_waiting {
            return Admission::Refused;
        }
        self.waiting.push_back(ticket);
        Admission::Wait
    }

    /// Someone who ran is done; says who takes the place.
    pub(super) fn leave(&mut self) -> Option<Ticket> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }

    /// Someone who waits gives up. False if the ticket was not waiting.
    pub(super) fn abandon(&mut self, ticket: Ticket) -> bool {
        match self.waiting.binary_search(&ticket) {
            Ok(place) => self.waiting.remove(place).is_some(),
            Err(_) => false,
        }
    }

    /// Place in the line, counted from one.
    pub(super) fn position(&self, ticket: Ticket) -> Option<usize> {
        self.waiting.binary_search(&ticket).ok().map(|place| place + 1)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
