//! A place outside of this process where sessions are recorded, so that another bridge can go on with them.
//!
//! The bridge knows nothing of that place: the program that starts it provides one ([`BridgeSettings::session_store`](crate::BridgeSettings)).
//! Without one a session lives and dies with its bridge.

use std::fmt::Debug;
use std::time::SystemTime;

use bytes::Bytes;
use futures::future::BoxFuture;

/// Records of sessions, shared by several bridges.
pub trait SessionStore: Send + Sync + Debug {
    /// The newest record of a session; `None` if there never was one, or if it was removed.
    fn read<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Option<StoredSession>, StoreError>>;

    /// Replaces the record with this revision, or writes the first one. Gives the new revision; `None` if the newest record
    /// is another, or was removed.
    fn write<'a>(
        &'a self,
        session: &'a str,
        record: Bytes,
        replaced: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<u64>, StoreError>>;

    /// Removes the record for good.
    fn remove<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// A record as it was written.
#[derive(Debug, Clone)]
pub struct StoredSession {
    pub record: Bytes,
    pub revision: u64,
    pub written_at: SystemTime,
}

/// The store does not answer, or refuses.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);
