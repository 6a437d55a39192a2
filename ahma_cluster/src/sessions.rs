//! Sessions of clients, as the front ends of a pool share them: one record each, which is replaced as a whole.
//!
//! A record says what another front end needs to go on with a session. It is found by the name of the session, of which only
//! a hash is stored: those who read the records cannot use the sessions.

use std::time::SystemTime;

use bytes::Bytes;

use crate::{
    link::{Append, Link, LinkError},
    names::record_name,
};

/// The records of a pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionRecords {
    link: Link,
}

/// A record, in the words of those who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    pub data: Bytes,
    pub revision: u64,
    pub written_at: SystemTime,
}

impl SessionRecords {
    pub fn new(link: Link) -> Self {
        Self { link }
    }

    /// The record of a session; none if there was none, or if it was removed.
    pub async fn read(&self, session: &str) -> Result<Option<SessionRecord>, LinkError> {
        if !self.link.is_connected() {
            return Err(LinkError::Unanswered);
        }
        let stream = self.link.pool().sessions_stream();
        let stored = self.link.last_message(&stream, &self.subject(session)).await?;
        let present = stored.filter(|stored| !stored.data.is_empty());
        Ok(present.map(|stored| SessionRecord {
            data: stored.data,
            revision: stored.sequence,
            written_at: stored.time.into(),
        }))
    }

    /// Writes a record if the newest one is still that with this revision, or if there is none yet. Gives the new revision;
    /// none if another was faster.
    pub async fn write(
        &self,
        session: &str,
        data: Bytes,
        replaced: Option<u64>,
    ) -> Result<Option<u64>, LinkError> {
        let after = Append::After(replaced.unwrap_or(0));
        match self.store(session, data, after).await {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.is_outrun() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a record. An empty one takes its place, so that a writer who has not heard of it does not bring it back.
    pub async fn remove(&self, session: &str) -> Result<(), LinkError> {
        self.store(session, Bytes::new(), Append::Anytime).await.map(drop)
    }

    async fn store(&self, session: &str, data: Bytes, place: Append<'_>) -> Result<u64, LinkError> {
        if !self.link.is_connected() {
            return Err(LinkError::Unanswered);
        }
        self.link.store_at(self.subject(session), data, place).await
    }

    fn subject(&self, session: &str) -> String {
        self.link.pool().session_subject(&record_name(session))
    }
}
