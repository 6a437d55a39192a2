//! The queue of operations: strictly first come, first served.

use std::collections::VecDeque;

/// Counted up by the registry with every operation, so the waiting line is always sorted.
pub(super) type Ticket = u64;

/// Slots to run in, and the operations that wait for one.
#[derive(Debug)]
pub(super) struct Queue {
    free: usize,
    max_waiting: usize,
    waiting: VecDeque<Ticket>,
}

/// The answer to a new operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueAdmission {
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

    /// A new operation; tickets must rise from call to call.
    pub(super) fn enter(&mut self, ticket: Ticket) -> QueueAdmission {
        debug_assert!(self.waiting.back().is_none_or(|&last| last < ticket));
        if self.free > 0 {
            // A slot is free only while the queue is empty.
            self.free -= 1;
            return QueueAdmission::Run;
        }
        if self.waiting.len() >= self.max_waiting {
            return QueueAdmission::Refused;
        }
        self.waiting.push_back(ticket);
        QueueAdmission::Wait
    }

    /// An operation that ran is done; returns the one that takes its slot.
    pub(super) fn leave(&mut self) -> Option<Ticket> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }

    /// Removes a waiting operation. False if the ticket was not waiting.
    pub(super) fn abandon(&mut self, ticket: Ticket) -> bool {
        match self.waiting.binary_search(&ticket) {
            Ok(place) => self.waiting.remove(place).is_some(),
            Err(_) => false,
        }
    }

    /// Position in the line, counted from one.
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
