//! Answers `initialize` for sessions whose scope is not known yet.
//!
//! A deferred child can run nothing and knows nothing of a session, so its answer depends only on what the
//! client offered. It is asked once for each such offer, stopped, and its answer used again for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::Nursery;
use crate::backend::{StartError, greet};
use crate::child::{Audience, CallFailure, Child, Heard, Spawn};
use crate::envelope::Envelope;

/// An answer may name tools or instructions that change; after this it is asked for again.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// Clients differ in a handful of ways. More is somebody playing.
const MAX_REMEMBERED: usize = 32;

#[derive(Debug)]
pub(crate) struct Greeter {
    nursery: Nursery,
    /// Sees to it that no deferred child outlives the bridge.
    tasks: TaskTracker,
    remembered: Mutex<HashMap<Box<str>, Remembered>>,
}

#[derive(Debug)]
struct Remembered {
    at: Instant,
    greeting: Arc<str>,
}

impl Greeter {
    pub(crate) fn new(nursery: Nursery, tasks: TaskTracker) -> Self {
        Self {
            nursery,
            tasks,
            remembered: Mutex::default(),
        }
    }

    /// The `result` for this `initialize` request.
    pub(crate) async fn greeting(&self, initialize: &Envelope<'_>) -> Result<Arc<str>, StartError> {
        let offer = offer_of(initialize);
        if let Some(greeting) = offer.as_deref().and_then(|offer| self.recall(offer)) {
            return Ok(greeting);
        }
        let command = self.nursery.factory.command(&Spawn::Deferred);
        let child = Child::start(&command, self.nursery.limits.clone(), Arc::new(Nobody))
            .map_err(|error| StartError::Spawn(format!("{}: {error}", command.program.display())))?;
        let (tx, greeted) = oneshot::channel();
        let (initialize, patience) = (Box::<str>::from(initialize.text()), self.nursery.start_timeout);
        // A task of its own: a client that goes away must not leave a child behind, nor must a refusal.
        self.tasks.spawn(async move {
            // Whoever asked may be gone.
            let _ = tx.send(greet(&child, &initialize, patience).await);
            child.stop(CallFailure::SessionEnded).await;
        });
        let greeting = greeted.await.unwrap_or(Err(StartError::Stopped))?;
        if let Some(offer) = offer {
            self.remember(offer, &greeting);
        }
        Ok(greeting)
    }

    fn recall(&self, offer: &str) -> Option<Arc<str>> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = remembered.get(offer)?;
        (known.at.elapsed() < FRESH_FOR).then(|| Arc::clone(&known.greeting))
    }

    fn remember(&self, offer: Box<str>, greeting: &Arc<str>) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.retain(|_, known| known.at.elapsed() < FRESH_FOR);
        if remembered.len() < MAX_REMEMBERED {
            remembered.insert(
                offer,
                Remembered {
                    at: Instant::now(),
                    greeting: Arc::clone(greeting),
                },
            );
        }
    }
}

/// What the client offers: its version and its capabilities, not its name.
fn offer_of(initialize: &Envelope<'_>) -> Option<Box<str>> {
    let params = initialize.params().ok()?;
    let capabilities = params.capabilities.map_or("", |value| value.get());
    Some(format!("{} {capabilities}", params.protocol_version?.get()).into())
}

/// A deferred child has nobody to talk to.
#[derive(Debug)]
struct Nobody;

impl Audience for Nobody {
    fn heard(&self, _child: &Arc<Child>, _heard: Heard<'_>) {}
}
