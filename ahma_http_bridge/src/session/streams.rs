//! The streams of one session: a standing one for messages that belong to no request, and one for each request
//! that is answered by a stream. Each message goes to exactly one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::event_stream::{EventStream, Keep, StreamReader};

/// Streams that were read to their end, kept for a client that lost its connection just then.
const MAX_READ: usize = 8;
/// The same in bytes: such a client is back soon, and answers may be large.
const MAX_READ_BYTES: usize = 4 << 20;
/// Bytes kept in answers that were not read. A client that is away for longer than this lasts loses the oldest.
const MAX_UNREAD_BYTES: usize = 16 << 20;

/// The upper bits of a stream's number tell the parts of a session apart that different bridges have; zero if it has one part.
pub(crate) const BITS_OF_BRIDGE: u32 = 32;

#[derive(Debug)]
pub(crate) struct SessionStreams {
    standing: Arc<EventStream>,
    requests: Mutex<Requests>,
}

#[derive(Debug)]
struct Requests {
    streams: BTreeMap<u64, Arc<EventStream>>,
    next_id: u64,
    closed: bool,
}

impl Requests {
    /// Keeps no more finished streams than there may be, the newest of each kind.
    fn forget_some(&mut self) {
        let (mut read, mut unread) = (Kept::default(), Kept::default());
        let mut spare = Vec::new();
        for (id, stream) in self.streams.iter().rev().filter(|(_, stream)| stream.is_closed()) {
            let fits = if stream.is_exhausted() {
                read.add(stream);
                read.count <= MAX_READ && read.fits(MAX_READ_BYTES)
            } else {
                unread.add(stream);
                unread.fits(MAX_UNREAD_BYTES)
            };
            if !fits {
                spare.push(*id);
            }
        }
        for id in spare {
            self.streams.remove(&id);
        }
    }
}

/// The finished streams of one kind so far, from the newest on.
#[derive(Debug, Default)]
struct Kept {
    count: usize,
    bytes: usize,
}

impl Kept {
    fn add(&mut self, stream: &EventStream) {
        self.count += 1;
        self.bytes += stream.cost_bytes();
    }

    /// One alone may be larger than all may be together.
    fn fits(&self, max_bytes: usize) -> bool {
        self.count == 1 || self.bytes <= max_bytes
    }
}

impl SessionStreams {
    /// The streams have numbers from `first` on.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            standing: EventStream::standing(first),
            requests: Mutex::new(Requests {
                streams: BTreeMap::new(),
                next_id: first + 1,
                closed: false,
            }),
        }
    }

    /// The stream that answers of an HTTP+SSE session go to as well.
    pub(crate) fn standing(&self) -> &Arc<EventStream> {
        &self.standing
    }

    /// Sends what belongs to no request: to the standing stream if it is being read, else to the newest
    /// open request that is being read, else to the standing stream for its next reader.
    pub(crate) fn push(&self, message: Bytes) {
        // Held to the end: a request that opens meanwhile takes what is in the standing stream only once.
        let requests = self.requests.lock();
        let mut message = message;
        if !self.standing.has_reader() {
            let newest_first = requests.streams.values().rev();
            for stream in newest_first.filter(|stream| stream.expects_reader()) {
                match stream.push(message) {
                    Ok(()) => return,
                    Err(refused) => message = refused,
                }
            }
        }
        // A closed one is that of a session that is over.
        let _ = self.standing.push(message);
    }

    /// A stream for a request with this many answers. It also takes what is still unread.
    pub(crate) fn open_request(&self, answers: usize) -> Arc<EventStream> {
        let mut requests = self.requests.lock();
        let stream = EventStream::for_answers(requests.next_id, Keep::ForReplay, answers);
        requests.next_id += 1;
        if requests.closed {
            stream.close();
        }
        requests.streams.insert(stream.id(), Arc::clone(&stream));
        requests.forget_some();
        if !requests.closed && !self.standing.has_reader() {
            for message in self.standing.take_unread() {
                // It has just been opened, and ends with its last answer or with all others.
                let _ = stream.push(message);
            }
        }
        stream
    }

    /// Forgets a request whose answer went out in one piece.
    pub(crate) fn forget(&self, stream: &EventStream) {
        self.requests.lock().streams.remove(&stream.id());
    }

    /// True if the id of an event is from the part of this session that another bridge had.
    pub(crate) fn is_from_elsewhere(&self, event_id: &str) -> bool {
        let stream = event_id
            .split_once('-')
            .and_then(|(stream, _)| stream.parse::<u64>().ok());
        let own = self.standing.id() >> BITS_OF_BRIDGE;
        own != 0 && stream.is_some_and(|stream| stream >> BITS_OF_BRIDGE != own)
    }

    /// A reader for a client that connects anew, with the id of the last event it saw, if any.
    /// `None` if the id names no stream of this session.
    pub(crate) fn resume(&self, last_event_id: Option<&str>) -> Option<StreamReader> {
        let Some(last_event_id) = last_event_id else {
            return Some(self.standing.read_after(None));
        };
        if self.is_from_elsewhere(last_event_id) {
            return Some(self.standing.read_after(None));
        }
        let (stream, seq) = last_event_id.split_once('-')?;
        let (stream, seq) = (stream.parse::<u64>().ok()?, seq.parse::<u64>().ok()?);
        if stream == self.standing.id() {
            return Some(self.standing.read_after(Some(seq)));
        }
        let stream = self.requests.lock().streams.get(&stream).cloned()?;
        Some(stream.read_after(Some(seq)))
    }

    /// Ends every stream. What is in them can still be read.
    pub(crate) fn close(&self) {
        self.standing.close();
        let mut requests = self.requests.lock();
        requests.closed = true;
        requests.streams.values().for_each(|stream| stream.close());
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
