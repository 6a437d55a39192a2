//! A bounded, replayable stream of messages for one client.
//!
//! The producer never waits: a client that does not read costs at most the bound, then loses the oldest
//! notifications and is told so; answers are not dropped one by one, but too many of them end the stream. There is one
//! reader at a time; a new one takes over where the client says it stopped. So a resumed stream has neither gaps nor
//! duplicates within the bound.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::error::{RequestError, RequestOutcome};
use crate::child::{Answer, CallFailure, ReplySink};

/// Bytes that one stream may hold for a client that is slow or away. Answers it has not read are kept beyond that.
const MAX_HELD_BYTES: usize = 1 << 20;
const MAX_HELD_EVENTS: usize = 1024;
/// A client that leaves this much unread is not reading.
const MAX_UNREAD_BYTES: usize = 64 << 20;
/// The same in answers, however short.
const MAX_UNREAD_EVENTS: usize = 16 << 10;
/// Approximate cost of a message in addition to its text.
const EVENT_OVERHEAD_BYTES: usize = 128;
/// Cost of a stream in addition to its messages, so that many short ones count, too.
const OVERHEAD_BYTES: usize = 4 << 10;

/// Treatment of a message that has been handed to the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It stays, within the bound, for a client that resumes.
    ForReplay,
    /// It is forgotten.
    UntilRead,
}

#[derive(Debug)]
pub(crate) struct EventStream {
    id: u64,
    keep: Keep,
    state: Mutex<StreamState>,
    changed: Notify,
}

#[derive(Debug)]
struct StreamState {
    events: VecDeque<Event>,
    held_bytes: usize,
    /// The number the next event gets. Numbers start at 1, so that "after 0" is the beginning.
    next_seq: u64,
    /// Everything up to this number has been handed to some connection.
    read_up_to: u64,
    /// Unread events before this number are answers; they need not be searched again.
    answers_before: u64,
    /// Answers still to come before the stream ends by itself; `None` for a standing stream.
    open_answers: Option<usize>,
    closed: bool,
    /// Number of the current reader.
    reader: u64,
    reader_attached: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) body: Bytes,
    /// Set on the answer of a request, `None` on everything before it.
    pub(crate) outcome: Option<RequestOutcome>,
}

/// The next item of a reader.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Event),
    /// This many messages were dropped because they were not read in time.
    Missed(u64),
    End,
}

impl EventStream {
    /// A stream that ends after `answers` answers.
    pub(crate) fn for_answers(id: u64, keep: Keep, answers: usize) -> Arc<Self> {
        Arc::new(Self::new(id, keep, Some(answers)))
    }

    /// A stream that lasts as long as its session.
    pub(crate) fn standing(id: u64) -> Arc<Self> {
        Arc::new(Self::new(id, Keep::ForReplay, None))
    }

    fn new(id: u64, keep: Keep, open_answers: Option<usize>) -> Self {
        let state = StreamState {
            events: VecDeque::new(),
            held_bytes: 0,
            next_seq: 1,
            read_up_to: 0,
            answers_before: 0,
            open_answers,
            closed: false,
            reader: 0,
            reader_attached: false,
        };
        Self {
            id,
            keep,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    /// Adds a notification or a request of the server. A closed stream gives it back.
    pub(crate) fn push(&self, body: Bytes) -> Result<(), Bytes> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(body);
        }
        state.append(body, None);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Adds the end of a request that no child has answered.
    pub(crate) fn refuse(&self, body: Bytes, error: RequestError) {
        self.end_request(body, RequestOutcome::Failed(error));
    }

    /// The last answer ends the stream. A cancelled request gets none: its client has forgotten it.
    fn end_request(&self, body: Bytes, outcome: RequestOutcome) {
        let mut state = self.state.lock();
        if !matches!(
            outcome,
            RequestOutcome::Failed(RequestError::Call(CallFailure::Cancelled))
        ) {
            state.append(body, Some(outcome));
        }
        if let Some(open) = &mut state.open_answers {
            *open = open.saturating_sub(1);
            state.closed |= *open == 0;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.state.lock().reader_attached
    }

    /// True if it is being read, or has never been read and so is about to be.
    pub(crate) fn expects_reader(&self) -> bool {
        let state = self.state.lock();
        state.reader_attached || state.reader == 0
    }

    /// True if everything was handed out and nothing more will come.
    pub(crate) fn is_exhausted(&self) -> bool {
        let state = self.state.lock();
        state.closed && state.read_up_to + 1 >= state.next_seq
    }

    /// Approximate cost of keeping the stream.
    pub(crate) fn cost_bytes(&self) -> usize {
        self.state.lock().held_bytes + OVERHEAD_BYTES
    }

    /// Removes and gives what no connection has taken yet.
    pub(crate) fn take_unread(&self) -> Vec<Bytes> {
        let mut state = self.state.lock();
        let read_up_to = state.read_up_to;
        let split = state.events.partition_point(|event| event.seq <= read_up_to);
        let unread = state.events.split_off(split);
        state.held_bytes -= unread.iter().map(Event::cost_bytes).sum::<usize>();
        state.read_up_to = state.next_seq - 1;
        unread.into_iter().map(|event| event.body).collect()
    }

    /// Reads on after the event a client saw last, or after what was handed out so far.
    /// The reader before, if any, finds its stream ended.
    pub(crate) fn read_after(self: &Arc<Self>, last_seen: Option<u64>) -> StreamReader {
        let mut state = self.state.lock();
        state.reader += 1;
        state.reader_attached = true;
        let next_seq = last_seen.unwrap_or(state.read_up_to).min(state.next_seq - 1) + 1;
        let number = state.reader;
        drop(state);
        self.changed.notify_waiters();
        StreamReader {
            stream: Arc::clone(self),
            number,
            next_seq,
        }
    }
}

impl ReplySink for EventStream {
    fn notify(&self, message: Bytes) {
        // A stream that is closed before its answer has no reader.
        let _ = self.push(message);
    }

    fn finish(&self, answer: Answer) {
        self.end_request(answer.body, answer.outcome.into());
    }
}

impl StreamState {
    fn append(&mut self, body: Bytes, outcome: Option<RequestOutcome>) {
        if self.closed {
            return;
        }
        let event = Event {
            seq: self.next_seq,
            body,
            outcome,
        };
        self.held_bytes += event.cost_bytes();
        self.events.push_back(event);
        self.next_seq += 1;
        while self.held_bytes > MAX_HELD_BYTES || self.events.len() > MAX_HELD_EVENTS {
            let Some(place) = self.least_needed() else { break };
            self.remove(place);
        }
        if self.held_bytes > MAX_UNREAD_BYTES || self.events.len() > MAX_UNREAD_EVENTS {
            // The client does not read. Answers cannot be left out one by one, so the stream ends.
            self.closed = true;
        }
    }

    /// The event to drop first: one that was read already, else the oldest notification, but never an answer that
    /// was not read, nor the newest message.
    fn least_needed(&mut self) -> Option<usize> {
        let newest = self.events.len().saturating_sub(1);
        if self.events.front()?.seq <= self.read_up_to {
            return (newest > 0).then_some(0);
        }
        let first = self
            .events
            .partition_point(|event| event.seq < self.answers_before);
        for (place, event) in self.events.iter().enumerate().take(newest).skip(first) {
            if event.outcome.is_none() {
                return Some(place);
            }
            self.answers_before = event.seq + 1;
        }
        None
    }

    fn remove(&mut self, place: usize) {
        if let Some(event) = self.events.remove(place) {
            self.held_bytes -= event.cost_bytes();
        }
    }
}

impl Event {
    fn cost_bytes(&self) -> usize {
        self.body.len() + EVENT_OVERHEAD_BYTES
    }
}

/// The current connection's place in a stream.
#[derive(Debug)]
pub(crate) struct StreamReader {
    stream: Arc<EventStream>,
    number: u64,
    next_seq: u64,
}

impl StreamReader {
    pub(crate) fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// The number of the last message before those it will read.
    pub(crate) fn position(&self) -> u64 {
        self.next_seq - 1
    }

    /// Waits for the next message. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            let stream = Arc::clone(&self.stream);
            let changed = stream.changed.notified();
            if let Some(next) = self.try_next() {
                return next;
            }
            changed.await;
        }
    }

    /// The next message if there is one already.
    pub(crate) fn try_next(&mut self) -> Option<Next> {
        let mut state = self.stream.state.lock();
        if state.reader != self.number {
            return Some(Next::End);
        }
        let place = state.events.partition_point(|event| event.seq < self.next_seq);
        let Some(event) = state.events.get(place).cloned() else {
            return state.closed.then_some(Next::End);
        };
        if event.seq > self.next_seq {
            let missed = event.seq - self.next_seq;
            self.next_seq = event.seq;
            return Some(Next::Missed(missed));
        }
        self.next_seq += 1;
        state.read_up_to = state.read_up_to.max(event.seq);
        if self.stream.keep == Keep::UntilRead {
            state.remove(place);
        }
        Some(Next::Event(event))
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut state = self.stream.state.lock();
        if state.reader == self.number {
            state.reader_attached = false;
        }
    }
}

#[cfg(test)]
#[path = "event_stream_tests.rs"]
mod tests;
