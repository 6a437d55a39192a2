//! The record of a session in the store that several bridges share: all that another one needs to go on with it.
//!
//! The record is the truth. A bridge that changes it replaces the newest one as a whole; a bridge that has an older one
//! repeats the difference when it looks again, which it does before every request of the client. A record that is gone
//! means that the session has ended, wherever that was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::session_store::{SessionStore, StoreError};

/// Facts that another bridge needs to know of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) principal: Box<str>,
    /// The protocol revision agreed on.
    pub(crate) version: Box<str>,
    /// The client's `initialize`, as it sent it.
    pub(crate) initialize: Box<str>,
    /// The client has said `notifications/initialized`.
    #[serde(default)]
    pub(crate) is_initialized: bool,
    /// The `result` the client gave for `roots/list`.
    #[serde(default)]
    pub(crate) roots: Option<Box<str>>,
    #[serde(default)]
    pub(crate) log_level: Option<Box<str>>,
    #[serde(default)]
    pub(crate) subscriptions: BTreeSet<Box<str>>,
}

/// A change of a record by the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordChange {
    Initialized,
    Roots(Box<str>),
    LogLevel(Box<str>),
    Subscribed(Box<str>),
    Unsubscribed(Box<str>),
}

impl SessionRecord {
    /// The record of a client that has only been greeted.
    pub(crate) fn opened(
        principal: impl Into<Box<str>>,
        version: impl Into<Box<str>>,
        initialize: impl Into<Box<str>>,
    ) -> Self {
        Self {
            principal: principal.into(),
            version: version.into(),
            initialize: initialize.into(),
            is_initialized: false,
            roots: None,
            log_level: None,
            subscriptions: BTreeSet::new(),
        }
    }

    /// The changes that lead here from an earlier record, in an order in which they can be repeated: a client whose roots are
    /// known is not asked for them.
    fn changes_since(&self, before: &Self) -> Vec<RecordChange> {
        let roots = self.roots.clone().filter(|_| self.roots != before.roots);
        let is_initialized = self.is_initialized && !before.is_initialized;
        let level = self
            .log_level
            .clone()
            .filter(|_| self.log_level != before.log_level);
        let new = self.subscriptions.difference(&before.subscriptions).cloned();
        let gone = before.subscriptions.difference(&self.subscriptions).cloned();
        let mut changes: Vec<_> = roots.map(RecordChange::Roots).into_iter().collect();
        changes.extend(is_initialized.then_some(RecordChange::Initialized));
        changes.extend(level.map(RecordChange::LogLevel));
        changes.extend(new.map(RecordChange::Subscribed));
        changes.extend(gone.map(RecordChange::Unsubscribed));
        changes
    }

    fn apply(&mut self, change: &RecordChange) {
        match change {
            RecordChange::Initialized => self.is_initialized = true,
            RecordChange::Roots(result) => self.roots = Some(result.clone()),
            RecordChange::LogLevel(level) => self.log_level = Some(level.clone()),
            RecordChange::Subscribed(uri) => drop(self.subscriptions.insert(uri.clone())),
            RecordChange::Unsubscribed(uri) => drop(self.subscriptions.remove(uri)),
        }
    }

    fn encoded(&self) -> Result<Bytes, StoreError> {
        let text = serde_json::to_vec(self).map_err(|error| StoreError(error.to_string()))?;
        Ok(text.into())
    }
}

/// The place of a session's record, and the newest record that is known here.
#[derive(Debug)]
pub(crate) struct KeptSession {
    store: Arc<dyn SessionStore>,
    session: Box<str>,
    known: Mutex<Known>,
    /// Held while the record is replaced, so that the changes of one bridge do not outrun each other.
    writing: tokio::sync::Mutex<()>,
    /// The changes that the client made here, or that were repeated here.
    repeated: Mutex<SessionRecord>,
    repeating: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Known {
    record: Arc<SessionRecord>,
    /// `None` before the first record is written.
    revision: Option<u64>,
    /// Time of the last write by any bridge, as far as is known here.
    written: Instant,
    looked: Instant,
}

/// A look at the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The newest record is known here.
    Current,
    /// The session was ended.
    Gone,
}

impl KeptSession {
    /// For a session that has no record yet.
    pub(crate) fn new(store: Arc<dyn SessionStore>, session: &str, record: SessionRecord) -> Self {
        let repeated = SessionRecord::opened(&*record.principal, &*record.version, &*record.initialize);
        Self {
            store,
            session: session.into(),
            known: Mutex::new(Known {
                record: Arc::new(record),
                revision: None,
                written: Instant::now(),
                looked: Instant::now(),
            }),
            writing: tokio::sync::Mutex::default(),
            repeated: Mutex::new(repeated),
            repeating: tokio::sync::Mutex::default(),
        }
    }

    /// The record of a session that another bridge has opened, unless that is older than `max_age`.
    pub(crate) async fn find(
        store: &Arc<dyn SessionStore>,
        session: &str,
        max_age: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let Some(stored) = store.read(session).await? else {
            return Ok(None);
        };
        let age = SystemTime::now()
            .duration_since(stored.written_at)
            .unwrap_or_default();
        if age > max_age {
            return Ok(None);
        }
        let record = serde_json::from_slice(&stored.record).map_err(|error| StoreError(error.to_string()))?;
        let kept = Self::new(Arc::clone(store), session, record);
        {
            let mut known = kept.known.lock();
            known.revision = Some(stored.revision);
            known.written = Instant::now().checked_sub(age).unwrap_or(known.written);
        }
        Ok(Some(kept))
    }

    pub(crate) fn record(&self) -> Arc<SessionRecord> {
        Arc::clone(&self.known.lock().record)
    }

    /// False as long as the store has not taken the first record.
    pub(crate) fn is_written(&self) -> bool {
        self.known.lock().revision.is_some()
    }

    /// Time since the record was written.
    pub(crate) fn age(&self) -> Duration {
        self.known.lock().written.elapsed()
    }

    /// Time since the last look at the store.
    pub(crate) fn unseen_for(&self) -> Duration {
        self.known.lock().looked.elapsed()
    }

    /// Looks for changes by other bridges.
    pub(crate) async fn look(&self) -> Result<Look, StoreError> {
        let stored = self.store.read(&self.session).await?;
        let mut known = self.known.lock();
        known.looked = Instant::now();
        let Some(stored) = stored else {
            // What was never written cannot have been removed.
            return Ok(match known.revision {
                Some(_) => Look::Gone,
                None => Look::Current,
            });
        };
        if known.revision.is_some_and(|revision| revision >= stored.revision) {
            return Ok(Look::Current);
        }
        let record = serde_json::from_slice(&stored.record).map_err(|error| StoreError(error.to_string()))?;
        known.record = Arc::new(record);
        known.revision = Some(stored.revision);
        known.written = Instant::now();
        Ok(Look::Current)
    }

    /// Changes that the client made at other bridges and that have not been repeated here.
    pub(crate) fn unrepeated(&self) -> Vec<RecordChange> {
        self.record().changes_since(&self.repeated.lock())
    }

    /// The right to repeat something, unless that is being done.
    pub(crate) fn try_repeating(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.repeating.try_lock().ok()
    }

    pub(crate) fn note_repeated(&self, change: &RecordChange) {
        self.repeated.lock().apply(change);
    }

    /// Changes the record by what the client has said here. What others have changed meanwhile stays.
    pub(crate) async fn change(&self, change: &RecordChange) -> Result<Look, StoreError> {
        self.note_repeated(change);
        let mut wanted = (*self.record()).clone();
        wanted.apply(change);
        if wanted == *self.record() {
            return Ok(Look::Current);
        }
        self.replace(|record| record.apply(change)).await
    }

    /// Writes the record once more, so that it does not grow old.
    pub(crate) async fn touch(&self) -> Result<Look, StoreError> {
        self.replace(|_| {}).await
    }

    async fn replace(&self, edit: impl Fn(&mut SessionRecord)) -> Result<Look, StoreError> {
        let _turn = self.writing.lock().await;
        loop {
            let known = self.known.lock().clone();
            let mut record = (*known.record).clone();
            edit(&mut record);
            let written = self
                .store
                .write(&self.session, record.encoded()?, known.revision)
                .await?;
            if let Some(revision) = written {
                let mut known = self.known.lock();
                known.record = Arc::new(record);
                known.revision = Some(revision);
                known.written = Instant::now();
                return Ok(Look::Current);
            }
            match self.look().await? {
                Look::Gone => return Ok(Look::Gone),
                // A first record that was written although nothing answered, or one that has just been removed.
                Look::Current if self.known.lock().revision.is_none() => return Ok(Look::Gone),
                Look::Current => {}
            }
        }
    }

    /// Ends the session for all bridges.
    pub(crate) async fn remove(&self) -> Result<(), StoreError> {
        self.store.remove(&self.session).await
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
