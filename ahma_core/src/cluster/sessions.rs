//! Sessions of HTTP clients, recorded in the pool, so that every front end finds them.

use ahma_cluster::{Link, LinkError, LinkSettings, SessionRecords, check};
use ahma_common::error_chain;
use ahma_http_bridge::{SessionStore, StoreError, StoredSession};
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};

/// The sessions of a pool.
#[derive(Debug)]
pub struct PoolSessions(SessionRecords);

impl PoolSessions {
    /// Connects to a pool.
    pub async fn open(settings: LinkSettings) -> Result<Self, LinkError> {
        let link = Link::connect(settings).await?;
        check(&link).await?;
        Ok(Self(SessionRecords::new(link)))
    }
}

impl SessionStore for PoolSessions {
    fn read<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Option<StoredSession>, StoreError>> {
        async move {
            let stored = self.0.read(session).await.map_err(refused)?;
            Ok(stored.map(|stored| StoredSession {
                record: stored.data,
                revision: stored.revision,
                written_at: stored.written_at,
            }))
        }
        .boxed()
    }

    fn write<'a>(
        &'a self,
        session: &'a str,
        record: Bytes,
        replaced: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        async move { self.0.write(session, record, replaced).await.map_err(refused) }.boxed()
    }

    fn remove<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        async move { self.0.remove(session).await.map_err(refused) }.boxed()
    }
}

fn refused(error: LinkError) -> StoreError {
    StoreError(error_chain(&error))
}
