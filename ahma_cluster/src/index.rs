//! How all operations of a pool stand, after the events that were taken.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{sync::watch, time::Instant};

use crate::{
    event::{End, Event},
    fold::{Effect, Folded, Stage},
};

/// Ends that are kept for those who follow an operation and want its result now. Later it is read from the log.
const RECENT_END_BYTES: usize = 256 << 10;

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
    /// Time of the claim that counts.
    pub claimed_at: Option<SystemTime>,
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

/// Place and size of an event in the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged {
    pub(crate) sequence: u64,
    pub(crate) time: SystemTime,
    pub(crate) bytes: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    operations: HashMap<String, Entry>,
    /// Those that have not ended, by the sequence of their first event.
    open: BTreeMap<u64, String>,
    /// The operation of each task.
    tasks: HashMap<String, (String, Duration)>,
    /// Workers that were given up while they ran an operation, counted by operation.
    verdicts: u64,
    /// Bytes of output of each owner's ended operations that were not dropped.
    kept_output: HashMap<String, u64>,
    recent_ends: RecentEnds,
    /// Those who want to hear of an operation.
    watched: HashMap<String, watch::Sender<u64>>,
}

impl Index {
    /// Takes the next event of the log.
    pub(crate) fn take(&mut self, (owner, operation): (&str, &str), event: Event, logged: Logged) {
        if !self.operations.contains_key(operation) {
            // What begins with another event is so old that its beginning is not kept any more.
            let Event::Queued { request, .. } = &event else {
                return;
            };
            let request = request.read().unwrap_or_default();
            let entry = Entry {
                operation: operation.to_owned(),
                owner: owner.to_owned(),
                tool: request.tool,
                command: request.command,
                client: request.client,
                folded: Folded::default(),
                first_sequence: logged.sequence,
                created_at: logged.time,
                claimed_at: None,
                worker: None,
                collected: false,
                output_bytes: 0,
                output_dropped: false,
                noticed: Instant::now(),
            };
            self.operations.insert(operation.to_owned(), entry);
        }
        let Some(entry) = self.operations.get_mut(operation) else {
            return;
        };
        // An operation belongs to the owner that queued it; no other owner can add to its log.
        if entry.owner != owner {
            return;
        }
        let effect = entry.folded.take(logged.sequence, &event);
        if effect != Effect::Ignored {
            entry.noticed = Instant::now();
        }
        if effect == Effect::Ended {
            self.open.remove(&entry.first_sequence);
        }
        match (effect, event) {
            (Effect::Queued, _) => {
                self.open.insert(entry.first_sequence, operation.to_owned());
            }
            (Effect::Claimed, Event::Claim { worker, .. }) => {
                entry.worker = Some(worker);
                entry.claimed_at = Some(logged.time);
            }
            (Effect::Requeued, _) => {
                entry.claimed_at = None;
                self.verdicts += 1;
            }
            (Effect::Ended, Event::Lost { .. }) => self.verdicts += 1,
            (Effect::Ended, Event::End(end)) => {
                entry.output_bytes = end.bytes;
                *self.kept_output.entry(entry.owner.clone()).or_default() += end.bytes;
                self.recent_ends.keep(operation, end, logged.bytes);
            }
            (_, Event::Collected) => entry.collected = true,
            (_, Event::OutputDropped) if !entry.output_dropped => {
                entry.output_dropped = true;
                release(&mut self.kept_output, entry);
            }
            (_, Event::Task { id, life_ms }) => {
                let life = Duration::from_millis(life_ms);
                self.tasks.insert(id, (operation.to_owned(), life));
            }
            _ => {}
        }
        if let Some(sender) = self.watched.get(operation) {
            sender.send_replace(logged.sequence);
        }
    }

    pub(crate) fn entry(&self, operation: &str) -> Option<&Entry> {
        self.operations.get(operation)
    }

    /// Tells of every event of an operation, also of one that is not known yet.
    pub(crate) fn watch(&mut self, operation: &str) -> watch::Receiver<u64> {
        let sender = self.watched.entry(operation.to_owned());
        sender.or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// The end of an operation as its worker reported it, if that was lately.
    pub(crate) fn recent_end(&self, operation: &str) -> Option<Arc<End>> {
        self.recent_ends.get(operation)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.operations.values()
    }

    /// All operations that have not ended, oldest first.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Entry> {
        self.open.values().filter_map(|name| self.operations.get(name))
    }

    /// Number of operations that wait and were queued before this sequence.
    pub(crate) fn waiting_before(&self, sequence: u64) -> usize {
        let older = self.open().take_while(|entry| entry.first_sequence < sequence);
        older.filter(|entry| is_waiting(entry)).count()
    }

    /// Place of an operation among those that wait, from one on.
    pub(crate) fn place_in_queue(&self, operation: &str) -> Option<usize> {
        let entry = self.entry(operation).filter(|entry| is_waiting(entry))?;
        Some(self.waiting_before(entry.first_sequence) + 1)
    }

    /// Ended operations whose output is more than its owner may keep: of each owner, what is older than the newest `limit`
    /// bytes. Those from before `oldest` have none any more.
    pub(crate) fn over_quota(&self, limit: u64, oldest: SystemTime) -> Vec<Entry> {
        // Of most pools none keeps too much, and nothing has to be sorted.
        let is_over = |entry: &Entry| {
            self.kept_output
                .get(&entry.owner)
                .is_some_and(|&kept| kept > limit)
        };
        if !self.kept_output.values().any(|&kept| kept > limit) {
            return Vec::new();
        }
        let has_output = |entry: &&Entry| {
            is_over(entry)
                && entry.folded.has_ended()
                && entry.output_bytes > 0
                && !entry.output_dropped
                && entry.created_at >= oldest
        };
        let mut entries: Vec<&Entry> = self.entries().filter(has_output).collect();
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

    /// The operation that a task is of, and the life of the task.
    pub(crate) fn task(&self, task: &str) -> Option<(String, Duration)> {
        self.tasks.get(task).cloned()
    }

    pub(crate) fn verdicts(&self) -> u64 {
        self.verdicts
    }

    /// Forgets operations whose log is not kept any more: those that have ended, and those that have not, from before a
    /// time each.
    pub(crate) fn forget_before(&mut self, ended: SystemTime, open: SystemTime) {
        let (operations, kept_output) = (&mut self.operations, &mut self.kept_output);
        operations.retain(|_, entry| {
            let oldest = if entry.folded.has_ended() { ended } else { open };
            let is_kept = entry.created_at >= oldest;
            if !is_kept && !entry.output_dropped {
                release(kept_output, entry);
            }
            is_kept
        });
        self.open.retain(|_, name| operations.contains_key(name));
        self.tasks
            .retain(|_, (operation, _)| operations.contains_key(operation));
        self.watched.retain(|_, sender| sender.receiver_count() > 0);
    }
}

/// Takes the output of an operation off what its owner keeps.
fn release(kept_output: &mut HashMap<String, u64>, entry: &Entry) {
    if let Some(kept) = kept_output.get_mut(&entry.owner) {
        *kept = kept.saturating_sub(entry.output_bytes);
        if *kept == 0 {
            kept_output.remove(&entry.owner);
        }
    }
}

fn is_waiting(entry: &Entry) -> bool {
    matches!(entry.folded.stage, Stage::Queued { .. })
}

/// The newest ends, oldest first.
#[derive(Debug, Default)]
struct RecentEnds {
    ends: VecDeque<RecentEnd>,
    bytes: usize,
}

#[derive(Debug)]
struct RecentEnd {
    operation: String,
    end: Arc<End>,
    bytes: usize,
}

impl RecentEnds {
    /// The newest is kept however long it is.
    fn keep(&mut self, operation: &str, end: End, bytes: usize) {
        self.ends.push_back(RecentEnd {
            operation: operation.to_owned(),
            end: Arc::new(end),
            bytes,
        });
        self.bytes += bytes;
        while self.bytes > RECENT_END_BYTES && self.ends.len() > 1 {
            self.bytes -= self.ends.pop_front().map_or(0, |oldest| oldest.bytes);
        }
    }

    fn get(&self, operation: &str) -> Option<Arc<End>> {
        let mut newest_first = self.ends.iter().rev();
        let kept = newest_first.find(|kept| kept.operation == operation)?;
        Some(Arc::clone(&kept.end))
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
