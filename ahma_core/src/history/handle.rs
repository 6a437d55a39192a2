//! The history of a server: records its operations, and finds those that are no longer in memory.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::{JoinHandle, Thread},
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    database::HistoryError,
    directory::HistoryDir,
    follower,
    reader::HistoryReader,
    retention::KeepLimits,
    rows::{OperationFilter, OperationRow, Owner, TaskRow},
    shared_reader::SharedReader,
    statements::WritingServer,
    writer::{SharedWriter, Writer, WriterMessage},
};
use crate::operation::{Journal, Operation, Principal};

/// Recalled operations held in memory: a long output is read page by page.
const RECALLED: usize = 16;

/// A disk that hangs must not hold up an answer for ever. It takes a fraction of a millisecond where the disk is not busy.
const RECORD_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest wait for the writer at the end of a server.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(8);

/// Place and limits of a history.
#[derive(Debug, Clone)]
pub(crate) struct HistorySettings {
    pub(crate) state_dir: PathBuf,
    /// The scope of the operations that are written down.
    pub(crate) scope: PathBuf,
    pub(crate) limits: KeepLimits,
    /// Bytes of output in a result.
    pub(crate) result_bytes: usize,
}

/// The history, written and read by one server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct History {
    core: Arc<HistoryCore>,
}

#[derive(Debug)]
struct HistoryCore {
    directory: HistoryDir,
    /// Name of this server in the history.
    server: String,
    scope: PathBuf,
    result_bytes: usize,
    mailbox: WriterMailbox,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Calls of [`History::recorded`], and how many of them found everything written. Locked while that is done.
    asked: AtomicU64,
    answered: Arc<tokio::sync::Mutex<u64>>,
    reader: SharedReader,
    /// The newest last.
    recalled: Mutex<VecDeque<Operation>>,
    trouble: Arc<Mutex<Option<String>>>,
}

/// Sends messages to the writer and wakes it.
#[derive(Debug, Clone)]
struct WriterMailbox {
    /// Not bounded: a message is a handle of something that exists anyway.
    messages: mpsc::Sender<WriterMessage>,
    writer: Arc<SharedWriter>,
    thread: Option<Thread>,
}

impl WriterMailbox {
    fn send(&self, message: WriterMessage) {
        let is_last = matches!(message, WriterMessage::Close);
        let sent = self.messages.send(message);
        if let Some(thread) = &self.thread
            && sent.is_ok()
            && (self.writer.is_to_be_woken() || is_last)
        {
            thread.unpark();
        }
    }
}

impl History {
    /// Starts the writer. The database is opened by it, when there is something to write.
    pub(crate) fn start(settings: HistorySettings) -> Self {
        let directory = HistoryDir::below(&settings.state_dir);
        let server = format!("{:016x}", rand::random::<u64>());
        let trouble = Arc::default();
        // Unbounded, because a call must never wait for the disk. Messages are handles, and the writer keeps a bounded
        // number of them while it cannot write.
        let (messages, receiver) = mpsc::channel();
        let writer = Arc::new(SharedWriter::new(Writer {
            directory: directory.clone(),
            writing: WritingServer {
                server: server.clone(),
                scope: settings.scope.clone(),
            },
            limits: settings.limits,
            messages: receiver,
            trouble: Arc::clone(&trouble),
        }));
        let of_thread = Arc::clone(&writer);
        let spawned = std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || of_thread.run());
        if let Err(error) = &spawned {
            tracing::warn!(%error, "the history is not kept: its thread cannot be started");
            *trouble.lock() = Some(error.to_string());
        }
        let core = HistoryCore {
            reader: SharedReader::of(directory.clone()),
            directory,
            server,
            scope: settings.scope,
            result_bytes: settings.result_bytes,
            mailbox: WriterMailbox {
                messages,
                writer,
                thread: spawned.as_ref().ok().map(|spawned| spawned.thread().clone()),
            },
            thread: Mutex::new(spawned.ok()),
            asked: AtomicU64::default(),
            answered: Arc::default(),
            recalled: Mutex::default(),
            trouble,
        };
        Self { core: Arc::new(core) }
    }

    /// Directory for outputs of this server's operations.
    pub(crate) fn output_dir(&self) -> PathBuf {
        self.core.directory.output_of(&self.core.server)
    }

    /// The journal for the engine whose operations are recorded.
    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        Arc::new(self.core.mailbox.clone())
    }

    /// The owner of a principal's operations here.
    pub(crate) fn owner(&self, principal: &Principal) -> Owner {
        Owner {
            principal: principal.clone(),
            scope: self.core.scope.clone(),
        }
    }

    /// Reason why nothing can be written at present.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.core.trouble.lock().clone()
    }

    /// Waits until everything noted so far is written, or cannot be in time. A client that learns of an operation after this
    /// finds it again even if this server dies.
    pub(crate) async fn recorded(&self) {
        let _ = tokio::time::timeout(RECORD_TIMEOUT, self.record()).await;
    }

    async fn record(&self) {
        let core = Arc::clone(&self.core);
        let number = core.asked.fetch_add(1, Ordering::SeqCst);
        let mut answered = Arc::clone(&core.answered).lock_owned().await;
        // Another call has written it with its own.
        if *answered > number {
            return;
        }
        // It holds the lock: while the disk hangs, others wait without a thread.
        let recorded = tokio::task::spawn_blocking(move || {
            let all = core.asked.load(Ordering::SeqCst);
            core.mailbox.writer.write_now();
            *answered = all;
        });
        let _ = recorded.await;
    }

    /// Records a task, which outlives this server.
    pub(crate) fn note_task(&self, task: TaskRow) {
        self.core.mailbox.send(WriterMessage::Task(task));
    }

    /// Records the server's description of itself, as JSON.
    pub(crate) fn note_facts(&self, facts: String) {
        self.core.mailbox.send(WriterMessage::Facts(facts));
    }

    /// An operation of a principal that is not in memory. One that another server runs is followed.
    pub(crate) async fn find(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<Option<Operation>, HistoryError> {
        let owner = self.owner(principal);
        let known = |operation: &&Operation| operation.id().as_str() == id;
        let held = self.core.recalled.lock().iter().find(known).cloned();
        if let Some(operation) = held {
            return Ok(Some(operation).filter(|operation| operation.principal() == principal));
        }
        let (id, result_bytes, journal) = (id.to_owned(), self.core.result_bytes, self.journal());
        let found = self.read(move |reader| {
            let row = reader.operation(Some(&owner), &id)?;
            let recall = |row: OperationRow| Ok((reader.recall_for(&row, result_bytes, Some(journal))?, row));
            row.map(recall).transpose()
        });
        let Some((operation, row)) = found.await? else {
            return Ok(None);
        };
        if operation.ended().is_none() {
            // Ends with the operation, or with its last reader.
            tokio::spawn(follower::follow(self.clone(), row, operation.clone()));
            return Ok(Some(operation));
        }
        let mut recalled = self.core.recalled.lock();
        if recalled.len() >= RECALLED {
            recalled.pop_front();
        }
        recalled.push_back(operation.clone());
        Ok(Some(operation))
    }

    /// Earlier operations of a principal in this scope.
    pub(crate) async fn list(
        &self,
        principal: &Principal,
        filter: OperationFilter,
    ) -> Result<Vec<OperationRow>, HistoryError> {
        let filter = OperationFilter {
            owner: Some(self.owner(principal)),
            ..filter
        };
        self.read(move |reader| reader.operations(&filter)).await
    }

    /// A task of a principal that lives on.
    pub(crate) async fn task(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<Option<TaskRow>, HistoryError> {
        let (owner, id) = (self.owner(principal), id.to_owned());
        self.read(move |reader| reader.task(&owner, &id)).await
    }

    /// Writes what is left and ends the writer.
    pub(crate) async fn close(&self) {
        self.core.mailbox.send(WriterMessage::Close);
        let Some(thread) = self.core.thread.lock().take() else {
            return;
        };
        let joined = tokio::task::spawn_blocking(move || thread.join());
        if tokio::time::timeout(CLOSE_TIMEOUT, joined).await.is_err() {
            tracing::warn!("the history could not be written to its end");
        }
    }

    /// Looks at the database, off the async threads.
    pub(super) async fn read<T: Default + Send + 'static>(
        &self,
        look: impl FnOnce(&HistoryReader) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        self.core.reader.read(look).await
    }
}

impl Journal for WriterMailbox {
    fn changed(&self, operation: &Operation) {
        self.send(WriterMessage::Changed(operation.clone()));
    }

    fn collected(&self, operation: &Operation) {
        self.send(WriterMessage::Collected(operation.id().clone()));
    }
}
