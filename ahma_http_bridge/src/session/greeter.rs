//! Answers `initialize` for sessions whose scope is not known yet.
//!
//! A deferred child can run nothing and knows nothing of a session, so its answer depends only on what the
//! client offered. It is asked once for each such offer, also by a crowd, stopped, and its answer used again for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
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
    /// By what the client offers: the answer, or whoever is just being asked for it.
    asked: Mutex<HashMap<Box<str>, Asked>>,
}

#[derive(Debug)]
struct Asked {
    at: Instant,
    answer: SharedAnswer,
}

type SharedAnswer = Shared<BoxFuture<'static, Result<Arc<str>, StartError>>>;

impl Greeter {
    pub(crate) fn new(nursery: Nursery, tasks: TaskTracker) -> Self {
        Self {
            nursery,
            tasks,
            asked: Mutex::default(),
        }
    }

    /// The `result` for this `initialize` request.
    pub(crate) async fn greeting(&self, initialize: &Envelope<'_>) -> Result<Arc<str>, StartError> {
        let offer = offer_of(initialize);
        let Some(turn) = offer.and_then(|offer| self.ask_or_join(offer, initialize)) else {
            return self.ask(initialize).await;
        };
        match turn {
            Turn::First(answer) => answer.await,
            // A refusal may be of what another client offered beside, and has that client's id in it.
            Turn::Later(answer) => match answer.await {
                Err(StartError::Refused(_)) => self.ask(initialize).await,
                answered => answered,
            },
        }
    }

    /// The answer to this offer, fresh or still to come. `None` if there are too many others.
    fn ask_or_join(&self, offer: Box<str>, initialize: &Envelope<'_>) -> Option<Turn> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        // A failure is for those who waited for it.
        asked.retain(|_, asked| {
            asked.at.elapsed() < FRESH_FOR && !matches!(asked.answer.peek(), Some(Err(_)))
        });
        if let Some(known) = asked.get(&offer) {
            return Some(Turn::Later(known.answer.clone()));
        }
        if asked.len() >= MAX_REMEMBERED {
            return None;
        }
        let answer = self.ask(initialize).shared();
        let first = Asked {
            at: Instant::now(),
            answer: answer.clone(),
        };
        asked.insert(offer, first);
        Some(Turn::First(answer))
    }

    /// Starts a deferred child for this request alone, once somebody waits for the answer.
    fn ask(&self, initialize: &Envelope<'_>) -> BoxFuture<'static, Result<Arc<str>, StartError>> {
        let (nursery, tasks) = (self.nursery.clone(), self.tasks.clone());
        let initialize = Box::<str>::from(initialize.text());
        Box::pin(async move {
            let command = nursery.factory.command(&Spawn::Deferred);
            let child = Child::start(&command, nursery.limits.clone(), Arc::new(Nobody))
                .map_err(|error| StartError::Spawn(format!("{}: {error}", command.program.display())))?;
            let (tx, greeted) = oneshot::channel();
            // A task of its own: a client that goes away must not leave a child behind, nor must a refusal.
            tasks.spawn(async move {
                // Whoever asked may be gone.
                let _ = tx.send(greet(&child, &initialize, nursery.start_timeout).await);
                child.stop(CallFailure::SessionEnded).await;
            });
            greeted.await.unwrap_or(Err(StartError::Stopped))
        })
    }
}

/// Whose request the child is asked with: one's own, or that of a client before.
#[derive(Debug)]
enum Turn {
    First(SharedAnswer),
    Later(SharedAnswer),
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
