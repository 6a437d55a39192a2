//! The writer thread of a server: collects messages, and writes them in batches.
//!
//! It holds running operations and writes their changes three times a second, so that output and findings are on disk within
//! a second. Calls only send it a handle. A call that cannot wait for this thread, because its client is about to learn of an
//! operation, writes everything itself ([`SharedWriter::write_now`]).

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering, fence},
        mpsc::{Receiver, TryRecvError},
    },
    time::{Duration, Instant, SystemTime},
};

use ahma_common::error_chain;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::TransactionBehavior;

use super::{
    database::{self, Database, HistoryError},
    directory::{HistoryDir, ServerLock},
    housekeeping::Housekeeping,
    retention::KeepLimits,
    rows::TaskRow,
    statements::{
        StoredWhere, WritingServer, take_stops, write_collected, write_operation, write_server, write_task,
        write_usage,
    },
    usage::UsageLog,
};
use crate::operation::{Operation, OperationId};

/// Messages from calls to the writer.
#[derive(Debug)]
pub(super) enum WriterMessage {
    Changed(Operation),
    Collected(OperationId),
    Task(TaskRow),
    /// The server's description of itself.
    Facts(String),
    /// The last message: everything is written now.
    Close,
}

/// The writer's part of a history.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) directory: HistoryDir,
    pub(super) writing: WritingServer,
    pub(super) limits: KeepLimits,
    pub(super) messages: Receiver<WriterMessage>,
    pub(super) trouble: Arc<Mutex<Option<String>>>,
}

/// A first message is written after this long, with all that came meanwhile. A transaction costs as much processor time
/// as a third of a call, however little it holds.
const BATCH_DELAY: Duration = Duration::from_millis(250);

/// Added to the niceness of the thread: calls come first.
const NICENESS: i32 = 10;

/// Interval at which changes of running operations are written: within a second, even on a busy machine.
const TICK: Duration = Duration::from_millis(300);

/// Time until the database is opened although there is nothing to write, to clean up after dead servers.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// Time between two looks at the limits, and number of ended operations after which there is one anyway.
const HOUSEKEEPING: Duration = Duration::from_secs(600);
const HOUSEKEEPING_ENDED: usize = 500;

/// Time for housekeeping at the end of a server.
const LAST_HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Time before a failed write is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Operations that wait to be written while it fails; more would be held in memory for nothing.
const MAX_WAITING: usize = 1_000;

/// The writer as its thread and calls share it.
#[derive(Debug)]
pub(super) struct SharedWriter {
    work: Mutex<WriterLoop>,
    /// The next message is to wake the thread. Not while a batch is collected: a call sends several messages, and to wake a
    /// thread costs it more than all else about them.
    awaits_message: AtomicBool,
}

/// State of the writer.
#[derive(Debug)]
struct WriterLoop {
    writer: Writer,
    started_at: SystemTime,
    database: Option<Database>,
    /// Held even while the database cannot be written, because the server lives.
    lock: Option<ServerLock>,
    /// Not written since they changed, the oldest first. Ended ones are in it once.
    changed: VecDeque<Operation>,
    collected: Vec<OperationId>,
    tasks: Vec<TaskRow>,
    facts: Option<String>,
    facts_are_written: bool,
    running: HashMap<OperationId, RunningEntry>,
    housekeeping: Housekeeping,
    batch_due: Option<Instant>,
    tick_due: Instant,
    housekeeping_due: Instant,
    ended_since: usize,
    dropped: usize,
    is_closing: bool,
}

/// An operation that has not ended.
#[derive(Debug)]
struct RunningEntry {
    operation: Operation,
    written_revision: u64,
    usage: UsageLog,
}

/// An operation after it was written.
struct WrittenOperation {
    operation: Operation,
    revision: u64,
    stored: StoredWhere,
    /// It had ended before it was written, so nothing more follows.
    has_ended: bool,
}

impl RunningEntry {
    /// Takes a sample if one is due; gives all of them.
    fn sampled(&mut self, now: Instant) -> Option<String> {
        let used = self.usage.is_due(now).then(|| self.operation.usage())??;
        self.usage.add(now, self.operation.snapshot().elapsed, used);
        Some(self.usage.to_json())
    }
}

impl SharedWriter {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            work: Mutex::new(WriterLoop::new(writer)),
            awaits_message: AtomicBool::new(true),
        }
    }

    /// The life of the thread, until the history is closed.
    pub(super) fn run(&self) {
        // On Linux a thread has a priority of its own; elsewhere it would be the server's.
        if cfg!(target_os = "linux") {
            rustix::process::nice(NICENESS).ok();
        }
        loop {
            // Before the messages are taken, so that the sender of a later one sees it.
            self.awaits_message.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let mut work = self.work.lock();
            if work.turn() == Flow::End {
                return work.let_go();
            }
            if work.batch_due.is_some() {
                self.awaits_message.store(false, Ordering::SeqCst);
            }
            let patience = work.patience();
            // A call that waits for its turn comes first.
            MutexGuard::unlock_fair(work);
            if !patience.is_zero() {
                std::thread::park_timeout(patience);
            }
        }
    }

    /// True if the sender of a message has to unpark the thread.
    pub(super) fn is_to_be_woken(&self) -> bool {
        fence(Ordering::SeqCst);
        self.awaits_message.swap(false, Ordering::SeqCst)
    }

    /// Writes everything that was sent before. Blocks as long as the disk does. On a busy machine the thread with its low
    /// priority would do it some ten milliseconds later.
    pub(super) fn write_now(&self) {
        self.work.lock().write_now();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoOn,
    End,
}

impl WriterLoop {
    fn new(writer: Writer) -> Self {
        let now = Instant::now();
        let (directory, server) = (writer.directory.clone(), writer.writing.server.clone());
        let housekeeping = Housekeeping::new(directory, server, writer.limits);
        Self {
            writer,
            started_at: SystemTime::now(),
            database: None,
            lock: None,
            changed: VecDeque::new(),
            collected: Vec::new(),
            tasks: Vec::new(),
            facts: None,
            facts_are_written: true,
            running: HashMap::new(),
            housekeeping,
            batch_due: None,
            tick_due: now + TICK,
            housekeeping_due: now + FIRST_LOOK,
            ended_since: 0,
            dropped: 0,
            is_closing: false,
        }
    }

    /// Takes messages, and does the work that is due.
    fn turn(&mut self) -> Flow {
        self.take_messages();
        let now = Instant::now();
        let is_due = self.batch_due.is_some_and(|due| due <= now);
        let is_tick = !self.running.is_empty() && self.tick_due <= now;
        if self.is_closing || is_due || is_tick {
            self.write(is_tick || self.is_closing);
        }
        if self.is_closing {
            self.keep_house_at_the_end();
            return Flow::End;
        }
        if self.housekeeping_due <= now || self.ended_since >= HOUSEKEEPING_ENDED {
            self.keep_house();
        } else if self.batch_due.is_none_or(|due| due > now) {
            self.do_a_piece();
        }
        Flow::GoOn
    }

    fn write_now(&mut self) {
        self.take_messages();
        // A closing writer is about to write everything, or has done it.
        if !self.is_closing {
            self.write(false);
        }
    }

    fn take_messages(&mut self) {
        while !self.is_closing {
            match self.writer.messages.try_recv() {
                Ok(message) => self.take(message),
                // The last handle is gone.
                Err(TryRecvError::Disconnected) => self.is_closing = true,
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    /// Closes database and lock, although calls may still hold the writer.
    fn let_go(&mut self) {
        self.database = None;
        self.lock = None;
    }

    fn patience(&self) -> Duration {
        if self.has_pieces() {
            return Duration::ZERO;
        }
        let tick = (!self.running.is_empty()).then_some(self.tick_due);
        let due = [self.batch_due, tick, Some(self.housekeeping_due)];
        let next = due.into_iter().flatten().min();
        next.map_or(HOUSEKEEPING, |next| {
            next.saturating_duration_since(Instant::now())
        })
    }

    fn take(&mut self, message: WriterMessage) {
        match message {
            WriterMessage::Changed(operation) => {
                if self.changed.len() >= MAX_WAITING {
                    self.changed.pop_front();
                    self.dropped += 1;
                }
                self.changed.push_back(operation);
            }
            WriterMessage::Collected(id) => self.collected.push(id),
            WriterMessage::Task(task) => self.tasks.push(task),
            WriterMessage::Facts(facts) => {
                self.facts = Some(facts);
                self.facts_are_written = false;
                if self.database.is_none() {
                    // They are written when there is something else to write, or to clean up.
                    return;
                }
            }
            WriterMessage::Close => self.is_closing = true,
        }
        self.batch_due.get_or_insert_with(|| Instant::now() + BATCH_DELAY);
    }

    /// Writes what waits and, at a tick, the changes of running operations.
    fn write(&mut self, looks_at_running: bool) {
        self.batch_due = None;
        let written = self.try_write(looks_at_running);
        if looks_at_running {
            self.tick_due = Instant::now() + TICK;
        }
        match written {
            Ok(()) => self.has_recovered(),
            Err(error) => {
                self.has_failed(&error);
                self.batch_due = Some(Instant::now() + RETRY);
                self.tick_due = Instant::now() + RETRY;
            }
        }
    }

    fn try_write(&mut self, looks_at_running: bool) -> Result<(), HistoryError> {
        let has_work = !self.changed.is_empty() || !self.collected.is_empty() || !self.tasks.is_empty();
        if self.database.is_none() && !has_work && self.running.is_empty() {
            // A server that ran nothing leaves nothing, and need not open it to end.
            return Ok(());
        }
        self.open()?;
        let changes = self.changes(looks_at_running);
        let Some(database) = &mut self.database else {
            return Ok(());
        };
        let writing = &self.writer.writing;
        let connection = &mut database.connection;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut written = Vec::new();
        for (operation, revision) in changes {
            let has_ended = operation.ended().is_some();
            let stored = write_operation(&transaction, writing, &operation)?;
            written.push(WrittenOperation {
                operation,
                revision,
                stored,
                has_ended,
            });
        }
        let seen: HashSet<_> = written.iter().map(|written| written.operation.id()).collect();
        for id in self.collected.iter().filter(|id| !seen.contains(id)) {
            write_collected(&transaction, id)?;
        }
        for task in &self.tasks {
            write_task(&transaction, task)?;
        }
        if !self.facts_are_written {
            write_server(&transaction, writing, self.started_at, self.facts.as_deref())?;
        }
        let mut stops = Vec::new();
        if looks_at_running {
            let now = Instant::now();
            for (id, entry) in &mut self.running {
                if let Some(samples) = entry.sampled(now) {
                    write_usage(&transaction, id, &samples)?;
                }
            }
            self.lock.iter().for_each(ServerLock::give_sign_of_life);
            stops = take_stops(&transaction, &writing.server)?;
        }
        transaction.commit()?;
        self.note_written(written);
        for (id, reason) in stops {
            if let Some(entry) = self.running.get(id.as_str()) {
                entry.operation.request_cancel(reason);
            }
        }
        Ok(())
    }

    /// The operations to write, each once and with its revision. They get their numbers in this order, in which they came.
    fn changes(&self, looks_at_running: bool) -> Vec<(Operation, u64)> {
        let mut seen = HashSet::new();
        let mut changes: Vec<_> = (self.changed.iter().rev())
            .filter(|operation| seen.insert(operation.id()))
            .map(|operation| (operation.clone(), operation.revision()))
            .collect();
        changes.reverse();
        if looks_at_running {
            for (id, entry) in &self.running {
                let revision = entry.operation.revision();
                if revision != entry.written_revision && seen.insert(id) {
                    changes.push((entry.operation.clone(), revision));
                }
            }
        }
        changes
    }

    /// Forgets what waited, now that it is written.
    fn note_written(&mut self, written: Vec<WrittenOperation>) {
        self.changed.clear();
        self.collected.clear();
        self.tasks.clear();
        self.facts_are_written = true;
        for written in written {
            let operation = written.operation;
            if written.has_ended {
                self.running.remove(operation.id());
                self.ended_since += 1;
                if written.stored == StoredWhere::Plain {
                    self.housekeeping.compress(&operation);
                }
                continue;
            }
            let entry = self.running.entry(operation.id().clone());
            let entry = entry.or_insert_with(|| RunningEntry {
                operation,
                written_revision: written.revision,
                usage: UsageLog::new(Instant::now()),
            });
            entry.written_revision = written.revision;
        }
    }

    /// Opens the database if it is not open, or not the one that is there.
    fn open(&mut self) -> Result<(), HistoryError> {
        let directory = &self.writer.directory;
        if let Some(database) = &self.database {
            if database.is_at(directory) {
                return Ok(());
            }
            self.database = None;
        }
        // The new database may not know running operations, or may have marked them as interrupted.
        for entry in self.running.values_mut() {
            entry.written_revision = u64::MAX;
        }
        let database = Database::open(directory)?;
        if !self.lock.as_ref().is_some_and(ServerLock::is_in_place) {
            self.lock = None;
            let lock = directory.lock(&self.writer.writing.server);
            self.lock = Some(lock.map_err(|source| HistoryError::Directory {
                path: directory.root().to_owned(),
                source,
            })?);
        }
        let (writing, facts) = (&self.writer.writing, self.facts.as_deref());
        write_server(&database.connection, writing, self.started_at, facts)?;
        self.facts_are_written = true;
        self.database = Some(database);
        Ok(())
    }

    fn keep_house(&mut self) {
        self.housekeeping_due = Instant::now() + HOUSEKEEPING;
        self.ended_since = 0;
        if let Err(error) = self.try_keep_house() {
            self.has_failed(&error);
            self.housekeeping_due = Instant::now() + RETRY.saturating_mul(15);
        }
    }

    fn try_keep_house(&mut self) -> Result<(), HistoryError> {
        self.open()?;
        if let Some(database) = &self.database {
            self.housekeeping.begin(&database.connection)?;
        }
        Ok(())
    }

    /// Short-lived servers do housekeeping too, if none has done it lately: there may never be another kind.
    fn keep_house_at_the_end(&mut self) {
        let is_due = self.writer.directory.last_housekeeping();
        if self.database.is_none() || is_due.is_some_and(|age| age < HOUSEKEEPING) {
            return;
        }
        self.keep_house();
        let deadline = Instant::now() + LAST_HOUSEKEEPING;
        while self.has_pieces() && Instant::now() < deadline {
            self.do_a_piece();
        }
    }

    /// True if there is work that is done in pieces, whenever nothing else is due.
    fn has_pieces(&self) -> bool {
        self.database.is_some() && self.housekeeping.has_pieces()
    }

    fn do_a_piece(&mut self) {
        if let Some(database) = &mut self.database
            && let Err(error) = self.housekeeping.do_a_piece(&mut database.connection)
        {
            self.has_failed(&error.into());
        }
    }

    fn has_failed(&mut self, error: &HistoryError) {
        let reason = error_chain(error);
        let mut trouble = self.writer.trouble.lock();
        if trouble.as_deref() != Some(&reason) {
            tracing::warn!(%reason, "the history cannot be written; commands run as ever");
            *trouble = Some(reason);
        }
        drop(trouble);
        self.database = None;
        database::after_failure(&self.writer.directory, error);
    }

    fn has_recovered(&mut self) {
        if self.writer.trouble.lock().take().is_some() {
            let dropped = std::mem::take(&mut self.dropped);
            tracing::info!(dropped, "the history is written again");
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
