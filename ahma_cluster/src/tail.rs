//! Every event of a pool, as it comes: the one place of a front end that knows how all operations stand.
//!
//! A push consumer of our own, in the memory of the server. It is made anew, from the last event on, when its beat stays away,
//! when the connection was lost, and when a number is missing.

use std::{
    cmp::Reverse,
    collections::HashMap,
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
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    event::Event,
    fold::{Effect, Folded, Stage},
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

/// An operation of the pool, in short.
#[derive(Debug, Clone)]
pub struct Entry {
    pub operation: String,
    pub owner: String,
    pub tool: String,
    /// The command on one short line.
    pub command: String,
    /// The session that its call came from.
    pub client: Option<String>,
    pub folded: Folded,
    /// Sequence of its first event.
    pub first_sequence: u64,
    pub created_at: SystemTime,
    /// The worker that runs it, or was the last to do so.
    pub worker: Option<String>,
    /// A client was given its result.
    pub collected: bool,
    /// Bytes of output that its worker published, known at the end.
    pub output_bytes: u64,
    /// They were dropped to make room.
    pub output_dropped: bool,
    /// When its stage was noticed here.
    pub noticed: Instant,
}

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

#[derive(Debug, Default)]
struct Index {
    operations: HashMap<String, Entry>,
    /// The operation of each task.
    tasks: HashMap<String, (String, Duration)>,
    /// Workers that were given up while they ran an operation, counted by operation.
    verdicts: u64,
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

    /// Tells of every event.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.reached.subscribe()
    }

    pub fn entry(&self, operation: &str) -> Option<Entry> {
        self.shared.index.lock().operations.get(operation).cloned()
    }

    /// All operations of an owner, oldest first.
    pub fn entries_of(&self, owner: &str) -> Vec<Entry> {
        let index = self.shared.index.lock();
        let mut entries: Vec<Entry> = index
            .operations
            .values()
            .filter(|entry| entry.owner == owner)
            .cloned()
            .collect();
        entries.sort_unstable_by_key(|entry| entry.first_sequence);
        entries
    }

    /// All operations that have not ended.
    pub fn open_entries(&self) -> Vec<Entry> {
        let index = self.shared.index.lock();
        let open = index
            .operations
            .values()
            .filter(|entry| !entry.folded.has_ended());
        open.cloned().collect()
    }

    /// Number of times that the worker of an operation was given up, as far back as the log is kept.
    pub fn verdicts(&self) -> u64 {
        self.shared.index.lock().verdicts
    }

    /// The newest of those that are wanted, the newest first.
    pub fn newest(&self, most: usize, is_wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let index = self.shared.index.lock();
        let mut wanted: Vec<&Entry> = index
            .operations
            .values()
            .filter(|entry| is_wanted(entry))
            .collect();
        wanted.sort_unstable_by_key(|entry| Reverse(entry.first_sequence));
        wanted.into_iter().take(most).cloned().collect()
    }

    /// Ended operations whose output is more than its owner may keep: of each owner, what is older than the newest `limit`
    /// bytes. Those from before `oldest` have none any more.
    pub(crate) fn over_quota(&self, limit: u64, oldest: SystemTime) -> Vec<Entry> {
        let index = self.shared.index.lock();
        let has_output = |entry: &&Entry| {
            entry.folded.has_ended()
                && entry.output_bytes > 0
                && !entry.output_dropped
                && entry.created_at >= oldest
        };
        let mut entries: Vec<&Entry> = index.operations.values().filter(has_output).collect();
        entries.sort_unstable_by_key(|entry| Reverse(entry.first_sequence));
        let mut kept: HashMap<&str, u64> = HashMap::new();
        entries.retain(|entry| {
            let kept = kept.entry(&entry.owner).or_default();
            // The newest stays however long it is: nobody may have read it yet.
            let is_newest = *kept == 0;
            *kept += entry.output_bytes;
            *kept > limit && !is_newest
        });
        entries.into_iter().cloned().collect()
    }

    /// Place of an operation among those that wait, from one on.
    pub fn place_in_queue(&self, operation: &str) -> Option<usize> {
        let index = self.shared.index.lock();
        let waits = |entry: &&Entry| matches!(entry.folded.stage, Stage::Queued { .. });
        let first = index.operations.get(operation).filter(waits)?.first_sequence;
        let waiting = index.operations.values().filter(waits);
        Some(waiting.filter(|entry| entry.first_sequence <= first).count())
    }

    /// Number of operations that wait and were queued before this sequence.
    pub(crate) fn waiting_before(&self, sequence: u64) -> usize {
        let index = self.shared.index.lock();
        let entries = index.operations.values();
        let waiting = entries.filter(|entry| matches!(entry.folded.stage, Stage::Queued { .. }));
        waiting.filter(|entry| entry.first_sequence < sequence).count()
    }

    /// Number of operations of an owner that have not ended.
    pub(crate) fn open_of(&self, owner: &str) -> usize {
        let index = self.shared.index.lock();
        let entries = index.operations.values();
        entries
            .filter(|entry| entry.owner == owner && !entry.folded.has_ended())
            .count()
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
        self.shared.index.lock().tasks.get(task).cloned()
    }

    /// Forgets operations whose log is not kept any more.
    pub(crate) fn forget_before(&self, oldest: SystemTime) {
        let mut index = self.shared.index.lock();
        let Index {
            operations, tasks, ..
        } = &mut *index;
        operations.retain(|_, entry| entry.created_at >= oldest);
        tasks.retain(|_, (operation, _)| operations.contains_key(operation));
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
                Ok(event) => self.shared.index.lock().take((owner, operation), &event, place),
                Err(error) => tracing::debug!(%error, operation, "an event cannot be read"),
            }
        }
        self.shared.reached.send_replace(place.sequence);
    }
}

impl Index {
    fn take(&mut self, (owner, operation): (&str, &str), event: &Event, place: Place) {
        if let Event::Task { id, life_ms } = event {
            let life = Duration::from_millis(*life_ms);
            self.tasks.insert(id.clone(), (operation.to_owned(), life));
        }
        let new = || {
            let request = match event {
                Event::Queued { request, .. } => request.read().unwrap_or_default(),
                _ => Default::default(),
            };
            Entry {
                operation: operation.to_owned(),
                owner: owner.to_owned(),
                tool: request.tool,
                command: request.command,
                client: request.client,
                folded: Folded::default(),
                first_sequence: place.sequence,
                created_at: place.time,
                worker: None,
                collected: false,
                output_bytes: 0,
                output_dropped: false,
                noticed: Instant::now(),
            }
        };
        let entry = self.operations.entry(operation.to_owned()).or_insert_with(new);
        entry.collected |= entry.owner == owner && *event == Event::Collected;
        entry.output_dropped |= entry.owner == owner && *event == Event::OutputDropped;
        // An operation belongs to the owner that queued it; no other owner can add to its log.
        if entry.owner != owner || entry.folded.take(place.sequence, event) == Effect::Ignored {
            return;
        }
        entry.noticed = Instant::now();
        self.verdicts += u64::from(matches!(event, Event::Lost { .. }));
        match event {
            Event::Claim { worker, .. } => entry.worker = Some(worker.clone()),
            Event::End(end) => entry.output_bytes = end.bytes,
            _ => {}
        }
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
