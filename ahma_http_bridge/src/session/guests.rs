//! Clients that have no session: how much each may ask at once, and with isolation the child of each.
//!
//! A child counts as a session; [`Sessions`] lets it in. Which directory it is confined to is the bridge's to say.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::activity::{Activity, Uses};
use super::hub::Hub;
use super::isolated::Nursery;
use super::registry::{OpenError, Sessions};
use crate::auth::Principal;
use crate::backend::{Backend, Restart, own_initialize};
use crate::child::{CallFailure, Child, Spawn};

#[derive(Debug)]
pub(crate) struct Guests {
    nursery: Nursery,
    /// Work that outlives the request it came with.
    tasks: TaskTracker,
    /// Requests a client may have open at once.
    max_calls: usize,
    /// With isolation: who has a child, by name.
    hosted: DashMap<Arc<str>, Hosted>,
    /// One permit for each request that a client may have open, by its name.
    callers: DashMap<Arc<str>, Arc<Semaphore>>,
}

#[derive(Debug)]
struct Hosted {
    backend: Arc<Backend>,
    /// The directory its child is confined to.
    scope: PathBuf,
    uses: Arc<Uses>,
}

/// The child for a request without a session, in use as long as the value lives.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) child: Arc<Child>,
    /// A child of everybody is always in use.
    pub(crate) activity: Option<Activity>,
}

impl Guests {
    pub(crate) fn new(nursery: Nursery, tasks: TaskTracker, max_calls: usize) -> Self {
        Self {
            nursery,
            tasks,
            max_calls,
            hosted: DashMap::new(),
            callers: DashMap::new(),
        }
    }

    /// A place for one more open request.
    pub(crate) fn permit(&self, principal: &Principal) -> Result<OwnedSemaphorePermit, OpenError> {
        let max = self.max_calls;
        // The entry is held meanwhile, so that nobody forgets it before the place is taken.
        let places = self
            .callers
            .entry(Arc::clone(&principal.name))
            .or_insert_with(|| Arc::new(Semaphore::new(max)));
        Arc::clone(&places)
            .try_acquire_owned()
            .map_err(|_| OpenError::TooManyCalls(max))
    }

    /// The child of a client, started when it is asked for. It is idle when nobody holds the second value.
    pub(crate) fn borrow(
        &self,
        principal: &Principal,
        scope: PathBuf,
        sessions: &Sessions,
    ) -> Result<(Arc<Backend>, Activity), OpenError> {
        let open = || {
            let spawn = Spawn::Scoped(scope.clone());
            // One without sessions passes nothing on.
            let hub = Arc::new(Hub::default());
            Hosted {
                backend: self
                    .nursery
                    .backend(spawn, Restart::OnDemand, own_initialize(), hub),
                scope: scope.clone(),
                uses: Arc::default(),
            }
        };
        let mut entry = self
            .hosted
            .entry(Arc::clone(&principal.name))
            .or_try_insert_with(|| {
                sessions.admit_guest(principal)?;
                Ok::<_, OpenError>(open())
            })?;
        // The client's rights may be others than when its child was started.
        if entry.scope != scope {
            sessions.readmit_guest()?;
            let last = std::mem::replace(&mut *entry, open());
            self.stop(last.backend);
        }
        Ok((Arc::clone(&entry.backend), Activity::begin(&entry.uses)))
    }

    pub(crate) fn backends(&self) -> Vec<Arc<Backend>> {
        self.hosted
            .iter()
            .map(|entry| Arc::clone(&entry.backend))
            .collect()
    }

    /// Ends the children that nobody has used for so long, and forgets who asks for nothing.
    pub(crate) fn end_idle(&self, idle: Duration, sessions: &Sessions) {
        let is_idle = |entry: &Hosted| entry.uses.idle_for() >= idle;
        let names: Vec<Arc<str>> = self
            .hosted
            .iter()
            .filter(|entry| is_idle(entry))
            .map(|entry| Arc::clone(entry.key()))
            .collect();
        for name in names {
            // Somebody may have come for it meanwhile.
            let removed = self.hosted.remove_if(&name, |_, entry| is_idle(entry));
            if let Some((_, Hosted { backend, .. })) = removed {
                sessions.dismiss_guest(&name);
                self.stop(backend);
            }
        }
        self.callers
            .retain(|_, places| places.available_permits() < self.max_calls);
    }

    fn stop(&self, backend: Arc<Backend>) {
        self.tasks
            .spawn(async move { backend.stop(CallFailure::Stopped).await });
    }
}
