use std::collections::HashMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::*;
use crate::session_store::StoredSession;

/// A store in memory, shared by the bridges of a test. An empty record is one that was removed.
#[derive(Debug, Default)]
struct Shelf(Mutex<HashMap<String, (Bytes, u64)>>);

impl SessionStore for Shelf {
    fn read<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Option<StoredSession>, StoreError>> {
        let found = self.0.lock().get(session).cloned();
        let found = found.filter(|(record, _)| !record.is_empty());
        let stored = found.map(|(record, revision)| StoredSession {
            record,
            revision,
            written_at: SystemTime::now() - Duration::from_secs(1),
        });
        async { Ok(stored) }.boxed()
    }

    fn write<'a>(
        &'a self,
        session: &'a str,
        record: Bytes,
        replaced: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        let mut shelf = self.0.lock();
        let newest = shelf.get(session).map(|(_, revision)| *revision);
        let written = (newest == replaced).then_some(newest.unwrap_or(0) + 1);
        if let Some(revision) = written {
            shelf.insert(session.to_owned(), (record, revision));
        }
        async move { Ok(written) }.boxed()
    }

    fn remove<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut shelf = self.0.lock();
        let newest = shelf.get(session).map_or(0, |(_, revision)| *revision);
        shelf.insert(session.to_owned(), (Bytes::new(), newest + 1));
        async { Ok(()) }.boxed()
    }
}

const LONG: Duration = Duration::from_secs(60);

fn record() -> SessionRecord {
    SessionRecord::opened("anna", "2025-06-18", "{}")
}

/// One session at two bridges.
async fn two() -> [KeptSession; 2] {
    let store: Arc<dyn SessionStore> = Arc::new(Shelf::default());
    let one = KeptSession::new(Arc::clone(&store), "s", record());
    assert_eq!(one.touch().await.unwrap(), Look::Current);
    let two = KeptSession::find(&store, "s", LONG).await.unwrap().unwrap();
    assert_eq!(*two.record(), record());
    [one, two]
}

#[tokio::test]
async fn changes_of_two_bridges_are_all_kept() {
    let [one, two] = two().await;
    let changes = [
        RecordChange::Subscribed("a".into()),
        RecordChange::LogLevel("debug".into()),
        RecordChange::Initialized,
        RecordChange::Roots("[]".into()),
    ];
    for (kept, change) in [&one, &two, &one, &two].into_iter().zip(&changes) {
        kept.change(change).await.unwrap();
    }
    let mut expected = record();
    changes.iter().for_each(|change| expected.apply(change));
    assert_eq!(*two.record(), expected);
    assert_eq!(one.look().await.unwrap(), Look::Current);
    assert_eq!(*one.record(), expected);
    // Each has to repeat what was said at the other.
    assert_eq!(one.unrepeated(), [changes[3].clone(), changes[1].clone()]);
    assert_eq!(two.unrepeated(), [changes[2].clone(), changes[0].clone()]);
    one.note_repeated(&changes[3]);
    assert_eq!(one.unrepeated(), [changes[1].clone()]);
}

#[tokio::test]
async fn what_one_bridge_ended_no_other_brings_back() {
    let [one, two] = two().await;
    one.remove().await.unwrap();
    assert_eq!(two.touch().await.unwrap(), Look::Gone);
    assert_eq!(two.change(&RecordChange::Initialized).await.unwrap(), Look::Gone);
    assert_eq!(two.look().await.unwrap(), Look::Gone);
    assert!(KeptSession::find(&two.store, "s", LONG).await.unwrap().is_none());
}

#[tokio::test]
async fn an_old_record_is_none() {
    let [one, _] = two().await;
    let found = KeptSession::find(&one.store, "s", Duration::ZERO).await;
    assert!(found.unwrap().is_none());
}
