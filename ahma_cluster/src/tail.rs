//! Every event of a pool, as it comes: the one place of a front end that knows how all operations stand.
//!
//! A push consumer of our own, in the memory of the server. It is made anew, from the last event on, when its beat stays away,
//! when the connection was lost, and when a number is missing.

use std::{
    cmp::Reverse,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use async_nats::Message;
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    event::{End, Event},
    index::{Entry, Index, Logged},
    link::{Link, LinkError},
    names::parts_of_operation_subject,
    streams::stream_state,
};

/// Beat of the consumer; after three that stay away it is made anew.
const IDLE_BEAT: Duration = Duration::from_secs(1);

/// Time after which a consumer that cannot be made is tried again.
const RETRY: Duration = Duration::from_millis(300);

/// Longest wait for the newest event.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads along. Cheap to clone; ends with its shutdown token.
#[derive(Debug, Clone)]
pub struct Tail {
    link: Link,
    shared: Arc<TailShared>,
}

#[derive(Debug)]
struct TailShared {
    index: Mutex<Index>,
    /// Sequence of the newest event that is in the index.
    reached: watch::Sender<u64>,
    is_nearly_full: AtomicBool,
}

impl Tail {
    /// Starts to read, from the oldest event that is kept.
    pub fn start(link: Link, shutdown: CancellationToken) -> Self {
        let tail = Self {
            link,
            shared: Arc::new(TailShared {
                index: Mutex::default(),
                reached: watch::Sender::new(0),
                is_nearly_full: AtomicBool::new(false),
            }),
        };
        let reading = tail.clone();
        // Ends with the token.
        tokio::spawn(async move {
            tokio::select! {
                () = reading.run() => {}
                () = shutdown.cancelled() => {}
            }
        });
        tail
    }

    /// Waits until every event is known that was in the log when this was called.
    pub async fn synced(&self) -> Result<(), LinkError> {
        let state = stream_state(&self.link, &self.link.pool().operations_stream()).await?;
        if state.messages == 0 {
            return Ok(());
        }
        let mut reached = self.shared.reached.subscribe();
        let there = reached.wait_for(|reached| *reached >= state.last_sequence);
        match tokio::time::timeout(SYNC_TIMEOUT, there).await {
            Ok(_) => Ok(()),
            Err(_) => Err(LinkError::Unanswered),
        }
    }

    /// Tells of every event of an operation.
    pub fn changes_of(&self, operation: &str) -> watch::Receiver<u64> {
        self.shared.index.lock().watch(operation)
    }

    pub fn entry(&self, operation: &str) -> Option<Entry> {
        self.shared.index.lock().entry(operation).cloned()
    }

    /// The end of an operation as its worker reported it. Known for a while only; the log has it for longer.
    pub fn recent_end(&self, operation: &str) -> Option<Arc<End>> {
        self.shared.index.lock().recent_end(operation)
    }

    /// All operations of an owner, oldest first.
    pub fn entries_of(&self, owner: &str) -> Vec<Entry> {
        let index = self.shared.index.lock();
        let of_owner = index.entries().filter(|entry| entry.owner == owner);
        let mut entries: Vec<Entry> = of_owner.cloned().collect();
        entries.sort_unstable_by_key(|entry| entry.first_sequence);
        entries
    }

    /// All operations that have not ended, oldest first.
    pub fn open_entries(&self) -> Vec<Entry> {
        self.shared.index.lock().open().cloned().collect()
    }

    /// Number of times that the worker of an operation was given up, as far back as the log is kept.
    pub fn verdicts(&self) -> u64 {
        self.shared.index.lock().verdicts()
    }

    /// The newest of those that are wanted, the newest first.
    pub fn newest(&self, most: usize, is_wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let index = self.shared.index.lock();
        let mut wanted: Vec<&Entry> = index.entries().filter(|entry| is_wanted(entry)).collect();
        wanted.sort_unstable_by_key(|entry| Reverse(entry.first_sequence));
        wanted.into_iter().take(most).cloned().collect()
    }

    /// Ended operations whose output is more than its owner may keep.
    pub(crate) fn over_quota(&self, limit: u64, oldest: SystemTime) -> Vec<Entry> {
        self.shared.index.lock().over_quota(limit, oldest)
    }

    /// Place of an operation among those that wait, from one on.
    pub fn place_in_queue(&self, operation: &str) -> Option<usize> {
        self.shared.index.lock().place_in_queue(operation)
    }

    /// Number of operations that wait and were queued before this sequence.
    pub(crate) fn waiting_before(&self, sequence: u64) -> usize {
        self.shared.index.lock().waiting_before(sequence)
    }

    /// Number of operations of an owner that have not ended.
    pub(crate) fn open_of(&self, owner: &str) -> usize {
        let index = self.shared.index.lock();
        index.open().filter(|entry| entry.owner == owner).count()
    }

    /// The log has room for the ends of operations, and no longer for new ones.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.shared.is_nearly_full.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nearly_full(&self, is_so: bool) {
        self.shared.is_nearly_full.store(is_so, Ordering::Relaxed);
    }

    /// The operation that a task is of, and the life of the task.
    pub fn task(&self, task: &str) -> Option<(String, Duration)> {
        self.shared.index.lock().task(task)
    }

    /// Forgets operations whose log is not kept any more.
    pub(crate) fn forget_before(&self, ended: SystemTime, open: SystemTime) {
        self.shared.index.lock().forget_before(ended, open);
    }

    async fn run(&self) {
        loop {
            if let Err(error) = self.read_on().await {
                tracing::debug!(%error, "the log of the pool cannot be read; trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Reads with one consumer, until that has to be made anew.
    async fn read_on(&self) -> Result<(), LinkError> {
        let mut connects = self.link.connects();
        let inbox = self.link.new_inbox();
        let mut messages = self.link.subscribe(inbox.clone()).await?;
        let last = *self.shared.reached.borrow();
        let stream = self.link.pool().operations_stream();
        let consumer = json!({
            "stream_name": stream,
            "config": {
                "deliver_subject": inbox,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": last + 1,
                "ack_policy": "none",
                "max_deliver": 1,
                "replay_policy": "instant",
                "idle_heartbeat": u64::try_from(IDLE_BEAT.as_nanos()).unwrap_or(u64::MAX),
                "flow_control": true,
                "mem_storage": true,
                "num_replicas": 1,
            },
        });
        self.link
            .api::<Value>(&format!("CONSUMER.CREATE.{stream}"), &consumer)
            .await?;
        let mut delivered = 0;
        loop {
            let message = tokio::select! {
                message = tokio::time::timeout(IDLE_BEAT * 3, messages.next()) => message,
                _ = connects.changed() => return Ok(()),
            };
            let Ok(Some(message)) = message else {
                return Ok(());
            };
            if message.status.is_some_and(|status| status.as_u16() == 100) {
                if self
                    .answer_beat(&message)
                    .await
                    .is_some_and(|last| last > delivered)
                {
                    return Ok(());
                }
                continue;
            }
            let Some(place) = message.reply.as_deref().and_then(Place::parse) else {
                continue;
            };
            if place.delivery != delivered + 1 {
                return Ok(());
            }
            delivered = place.delivery;
            self.take(&message, place);
        }
    }

    /// Number of the last message that was delivered, if the beat says so.
    async fn answer_beat(&self, beat: &Message) -> Option<u64> {
        let header = |name: &str| {
            let headers = beat.headers.as_ref()?;
            Some(headers.get(name)?.as_str().to_owned())
        };
        // Flow control: the server waits until we have come this far.
        let asked = beat.reply.as_ref().map(ToString::to_string);
        if let Some(subject) = asked.or_else(|| header("Nats-Consumer-Stalled")) {
            self.link.publish(subject, Default::default()).await;
        }
        header("Nats-Last-Consumer")?.parse().ok()
    }

    fn take(&self, message: &Message, place: Place) {
        if let Some((owner, operation)) = parts_of_operation_subject(&message.subject) {
            match serde_json::from_slice::<Event>(&message.payload) {
                Ok(event) => {
                    let logged = Logged {
                        sequence: place.sequence,
                        time: place.time,
                        bytes: message.payload.len(),
                    };
                    self.shared.index.lock().take((owner, operation), event, logged);
                }
                Err(error) => tracing::debug!(%error, operation, "an event cannot be read"),
            }
        }
        self.shared.reached.send_replace(place.sequence);
    }
}

/// Position of a message in the stream, read from its acknowledgement subject.
#[derive(Debug, Clone, Copy)]
struct Place {
    sequence: u64,
    /// Number among those that this consumer delivered.
    delivery: u64,
    time: SystemTime,
}

impl Place {
    fn parse(address: &str) -> Option<Self> {
        let parts: Vec<&str> = address.split('.').collect();
        // With a domain and an account in front of the stream, in later versions.
        let first = match parts.len() {
            9 => 5,
            11.. => 7,
            _ => return None,
        };
        let number = |index: usize| parts.get(first + index)?.parse::<u64>().ok();
        Some(Self {
            sequence: number(0)?,
            delivery: number(1)?,
            time: SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(number(2)?))?,
        })
    }
}
