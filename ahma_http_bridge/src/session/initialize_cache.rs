//! Answers `initialize` for sessions whose scope is not known yet.
//!
//! A deferred child can run nothing and knows nothing of a session, so its answer depends only on what the
//! client offered. It is asked once for each such offer, also by a crowd, stopped, and its answer used again for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::child::{
    CallFailure, Child, ChildMessage, ChildSink, ChildSpawner, Spawn, StartError, initialize_child,
};
use ahma_common::envelope::Envelope;

/// An answer may name tools or instructions that change; after this it is asked for again.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// Clients differ in a handful of ways. More is abuse.
const MAX_REMEMBERED: usize = 32;

#[derive(Debug)]
pub(crate) struct InitializeCache {
    spawner: ChildSpawner,
    /// Sees to it that no deferred child outlives the bridge.
    tasks: TaskTracker,
    /// By what the client offers: the answer, or the pending request for it.
    asked: Mutex<HashMap<Box<str>, CacheEntry>>,
}

#[derive(Debug)]
struct CacheEntry {
    at: Instant,
    answer: SharedAnswer,
}

type SharedAnswer = Shared<BoxFuture<'static, Result<Arc<str>, StartError>>>;

impl InitializeCache {
    pub(crate) fn new(spawner: ChildSpawner, tasks: TaskTracker) -> Self {
        Self {
            spawner,
            tasks,
            asked: Mutex::default(),
        }
    }

    /// The `result` for this `initialize` request.
    pub(crate) async fn result_for(&self, initialize: &Envelope<'_>) -> Result<Arc<str>, StartError> {
        let offer = offer_of(initialize);
        let Some(turn) = offer.and_then(|offer| self.ask_or_join(offer, initialize)) else {
            return self.ask(initialize).await;
        };
        match turn {
            CachedAnswer::First(answer) => answer.await,
            // A refusal may be of something else that another client offered, and has that client's id in it.
            CachedAnswer::Later(answer) => match answer.await {
                Err(StartError::Refused(_)) => self.ask(initialize).await,
                answered => answered,
            },
        }
    }

    /// The answer to this offer, fresh or still to come. `None` if there are too many others.
    fn ask_or_join(&self, offer: Box<str>, initialize: &Envelope<'_>) -> Option<CachedAnswer> {
        let mut asked = self.asked.lock();
        // A failure is for those who waited for it.
        asked.retain(|_, asked| {
            asked.at.elapsed() < FRESH_FOR && !matches!(asked.answer.peek(), Some(Err(_)))
        });
        if let Some(known) = asked.get(&offer) {
            return Some(CachedAnswer::Later(known.answer.clone()));
        }
        if asked.len() >= MAX_REMEMBERED {
            return None;
        }
        let answer = self.ask(initialize).shared();
        let first = CacheEntry {
            at: Instant::now(),
            answer: answer.clone(),
        };
        asked.insert(offer, first);
        Some(CachedAnswer::First(answer))
    }

    /// Starts a deferred child for this request alone, once the answer is awaited.
    fn ask(&self, initialize: &Envelope<'_>) -> BoxFuture<'static, Result<Arc<str>, StartError>> {
        let (spawner, tasks) = (self.spawner.clone(), self.tasks.clone());
        let initialize = Box::<str>::from(initialize.text());
        Box::pin(async move {
            let child = spawner.start(&Spawn::Deferred, Arc::new(NoSink))?;
            let (tx, initialized) = oneshot::channel();
            // A task of its own: a client that goes away must not leave a child behind, nor must a refusal.
            tasks.spawn(async move {
                // The client may be gone.
                let _ = tx.send(initialize_child(&child, &initialize, spawner.start_timeout).await);
                child.stop(CallFailure::SessionEnded).await;
            });
            initialized.await.unwrap_or(Err(StartError::Stopped))
        })
    }
}

/// An answer to this client's own request, or to that of a client before it.
#[derive(Debug)]
enum CachedAnswer {
    First(SharedAnswer),
    Later(SharedAnswer),
}

/// The client's offer: its version and its capabilities, not its name.
fn offer_of(initialize: &Envelope<'_>) -> Option<Box<str>> {
    let params = initialize.params().ok()?;
    let capabilities = params.capabilities.map_or("", |value| value.get());
    Some(format!("{} {capabilities}", params.protocol_version?.get()).into())
}

/// Nothing that a deferred child says is for a client.
#[derive(Debug)]
struct NoSink;

impl ChildSink for NoSink {
    fn received(&self, _child: &Arc<Child>, _message: ChildMessage<'_>) {}
}
