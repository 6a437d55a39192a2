//! Clients that have no session: how much each may ask at once, and with isolation the child of each.
//!
//! A child counts as a session; [`Sessions`] lets it in. Which directory it is confined to is the bridge's to say.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::error::RequestError;
use super::hub::refuse_question;
use super::registry::Sessions;
use crate::activity::{Activity, Uses};
use crate::auth::Principal;
use crate::child::{
    Backend, CallFailure, Child, ChildMessage, ChildSink, ChildSpawner, ClientId, Restart, Spawn,
    own_initialize,
};
use crate::operations::{BackendOwner, OperationOwner};

#[derive(Debug)]
pub(crate) struct SessionlessBackends {
    spawner: ChildSpawner,
    /// Work that outlives the request it came with.
    tasks: TaskTracker,
    /// Requests a client may have open at once.
    max_calls: usize,
    /// With isolation: who has a child, by name.
    by_principal: DashMap<Arc<str>, SessionlessBackend>,
    /// One permit for each request that a client may have open, by its name.
    callers: DashMap<Arc<str>, Arc<Semaphore>>,
}

#[derive(Debug)]
struct SessionlessBackend {
    backend: Arc<Backend>,
    /// The directory its child is confined to.
    scope: PathBuf,
    uses: Arc<Uses>,
}

/// The child for a request without a session, in use as long as the value lives.
#[derive(Debug)]
pub(crate) struct BackendLease {
    pub(crate) child: Arc<Child>,
    /// A shared child is always in use.
    pub(crate) _activity: Option<Activity>,
}

/// A client without a session is sent nothing but answers. Its child is in use while an operation runs.
#[derive(Debug)]
struct SessionlessSink {
    uses: Arc<Uses>,
    principal: Arc<str>,
}

impl ChildSink for SessionlessSink {
    fn operation_owner(&self, _client: Option<ClientId>) -> OperationOwner {
        OperationOwner {
            session: None,
            activity: Some(Activity::begin(&self.uses)),
        }
    }

    fn owner(&self) -> BackendOwner {
        BackendOwner {
            principal: Some(Arc::clone(&self.principal)),
            session: None,
        }
    }

    fn received(&self, child: &Arc<Child>, message: ChildMessage<'_>) {
        refuse_question(child, &message);
    }
}

impl SessionlessBackends {
    pub(crate) fn new(spawner: ChildSpawner, tasks: TaskTracker, max_calls: usize) -> Self {
        Self {
            spawner,
            tasks,
            max_calls,
            by_principal: DashMap::new(),
            callers: DashMap::new(),
        }
    }

    /// A place for one more open request.
    pub(crate) fn permit(&self, principal: &Principal) -> Result<OwnedSemaphorePermit, RequestError> {
        let max = self.max_calls;
        // The entry is held meanwhile, so that it is not removed before the permit is taken.
        let places = self
            .callers
            .entry(Arc::clone(&principal.name))
            .or_insert_with(|| Arc::new(Semaphore::new(max)));
        Arc::clone(&places)
            .try_acquire_owned()
            .map_err(|_| RequestError::TooManyClientCalls(max))
    }

    /// The child of a client, started when it is asked for. It is idle when no second value is held.
    pub(crate) fn borrow(
        &self,
        principal: &Principal,
        scope: PathBuf,
        sessions: &Sessions,
    ) -> Result<(Arc<Backend>, Activity), RequestError> {
        let open = || {
            let spawn = Spawn::Scoped(scope.clone());
            let uses = Arc::<Uses>::default();
            let sink = Arc::new(SessionlessSink {
                uses: Arc::clone(&uses),
                principal: Arc::clone(&principal.name),
            });
            SessionlessBackend {
                backend: self
                    .spawner
                    .of(principal)
                    .backend(spawn, Restart::OnDemand, own_initialize(), sink),
                scope: scope.clone(),
                uses,
            }
        };
        let mut entry = self
            .by_principal
            .entry(Arc::clone(&principal.name))
            .or_try_insert_with(|| {
                sessions.admit_sessionless(principal)?;
                Ok::<_, RequestError>(open())
            })?;
        // The client's rights may be others than when its child was started.
        if entry.scope != scope {
            sessions.readmit_sessionless()?;
            let last = std::mem::replace(&mut *entry, open());
            self.stop(last.backend);
        }
        Ok((Arc::clone(&entry.backend), Activity::begin(&entry.uses)))
    }

    pub(crate) fn backends(&self) -> Vec<Arc<Backend>> {
        self.by_principal
            .iter()
            .map(|entry| Arc::clone(&entry.backend))
            .collect()
    }

    /// Ends the children that have been idle for so long, and forgets clients without requests.
    pub(crate) fn end_idle(&self, idle: Duration, sessions: &Sessions) {
        let is_idle = |entry: &SessionlessBackend| entry.uses.idle_for() >= idle;
        let names: Vec<Arc<str>> = self
            .by_principal
            .iter()
            .filter(|entry| is_idle(entry))
            .map(|entry| Arc::clone(entry.key()))
            .collect();
        for name in names {
            // A request may have come for it meanwhile.
            let removed = self.by_principal.remove_if(&name, |_, entry| is_idle(entry));
            if let Some((_, SessionlessBackend { backend, .. })) = removed {
                sessions.dismiss_sessionless(&name);
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
