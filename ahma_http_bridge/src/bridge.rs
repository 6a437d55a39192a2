//! State that all requests share: settings, sessions, backends of clients without one, and the shared child.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::audit::Audit;
use crate::auth::{Authenticator, Principal};
use crate::child::{
    Backend, CallFailure, Child, ChildFactory, ChildLimits, ChildSink, ChildSpawner, Restart, Spawn,
    own_initialize,
};
use crate::echo::Echo;
use crate::isolation::Isolation;
use crate::metrics::{Gauges, Metrics};
use crate::operations::{OperationCount, OperationRecorder};
use crate::pressure::Pressure;
use crate::redact::Redactor;
use crate::serve_error::ServeError;
use crate::session::{
    BITS_OF_BRIDGE, BackendLease, EndReason, Hub, InitializeCache, Isolated, RequestError, RootsRule,
    Service, Session, SessionParams, SessionlessBackends, Sessions, Transport,
};
use crate::settings::BridgeSettings;
use ahma_common::contract::STOP_OPERATIONS;

/// Interval between looks for open requests at the end.
const DRAIN_TICK: Duration = Duration::from_millis(20);

/// Time for operations to be stopped: a command has five seconds for its last words.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);

/// Time for the answers of calls that waited for a stopped operation.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason given for what the end of the server interrupts.
const SHUTTING_DOWN: &str = "the server is shutting down";

#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) settings: BridgeSettings,
    pub(crate) sessions: Sessions,
    pub(crate) initialize_cache: InitializeCache,
    spawner: ChildSpawner,
    /// The one child of all clients, without isolation.
    shared: Option<Shared>,
    pub(crate) sessionless: SessionlessBackends,
    pub(crate) auth: Authenticator,
    pub(crate) audit: Arc<Audit>,
    pub(crate) recorder: Arc<OperationRecorder>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) metrics: Metrics,
    pub(crate) pressure: Pressure,
    /// Work that outlives the request it came with.
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    hub: Arc<Hub>,
    backend: Arc<Backend>,
}

impl Bridge {
    pub(crate) fn new(
        settings: BridgeSettings,
        factory: Arc<dyn ChildFactory>,
        shutdown: CancellationToken,
    ) -> Result<Arc<Self>, ServeError> {
        let redactor = Arc::new(Redactor::new());
        let audit = match &settings.audit_file {
            None => Audit::to_log(Arc::clone(&redactor)),
            Some(path) => Audit::to_file(path, Arc::clone(&redactor)).map_err(|error| ServeError::Audit {
                path: path.clone(),
                reason: error.to_string(),
            })?,
        };
        let audit = Arc::new(audit);
        let recorder = Arc::new(OperationRecorder::new(Arc::clone(&audit)));
        let limits = ChildLimits {
            recorder: Arc::clone(&recorder),
            grace: settings.times.stop_grace,
            echo: settings
                .debug_echo
                .then(|| Echo::to_stderr(Arc::clone(&redactor))),
        };
        let spawner = ChildSpawner {
            factory,
            limits,
            start_timeout: settings.times.start,
            principal: None,
        };
        let tasks = TaskTracker::new();
        let shared = (settings.isolation == Isolation::Shared).then(|| {
            let hub = Arc::new(Hub::default());
            let sink = Arc::clone(&hub) as Arc<dyn ChildSink>;
            let backend = spawner.backend(Spawn::Shared, Restart::Eager, own_initialize(), sink);
            Shared { hub, backend }
        });
        Ok(Arc::new(Self {
            auth: Authenticator::new(
                &settings.auth,
                settings.isolation,
                settings.limits.sessions_per_principal,
            )?,
            audit,
            recorder,
            redactor,
            metrics: Metrics::default(),
            pressure: Pressure::default(),
            sessions: Sessions::new(settings.limits.sessions),
            initialize_cache: InitializeCache::new(spawner.clone(), tasks.clone()),
            sessionless: SessionlessBackends::new(
                spawner.clone(),
                tasks.clone(),
                settings.limits.calls_per_session,
            ),
            spawner,
            shared,
            tasks,
            shutdown,
            settings,
        }))
    }

    /// Opens a session that is not initialised yet.
    pub(crate) fn open_session(
        &self,
        principal: &Arc<Principal>,
        transport: Transport,
    ) -> Result<Arc<Session>, RequestError> {
        self.refuse_under_pressure()?;
        let session = self.sessions.open(self.session_params(principal, transport))?;
        self.metrics.session_opened();
        Ok(session)
    }

    pub(crate) fn session_params(&self, principal: &Arc<Principal>, transport: Transport) -> SessionParams {
        let service = match &self.shared {
            Some(Shared { hub, backend }) => Service::Shared {
                backend: Arc::clone(backend),
                hub: Arc::clone(hub),
            },
            None => Service::Isolated(Box::new(Isolated::new(
                self.spawner.of(principal),
                self.roots_rule(principal),
            ))),
        };
        // Where several bridges have parts of one session, the number of a stream tells theirs apart.
        let first_stream = match self.settings.session_store {
            Some(_) => (Uuid::new_v4().as_u64_pair().0 | 1) << BITS_OF_BRIDGE,
            None => 0,
        };
        SessionParams {
            audit: Arc::clone(&self.audit),
            principal: Arc::clone(principal),
            transport,
            service,
            max_calls: self.settings.limits.calls_per_session,
            first_stream,
        }
    }

    /// Refuses new work when memory or load are over their thresholds; what is open goes on.
    pub(crate) fn refuse_under_pressure(&self) -> Result<(), RequestError> {
        self.pressure
            .over(&self.settings.limits)
            .map_or(Ok(()), |why| Err(RequestError::Pressure(why)))
    }

    pub(crate) fn gauges(&self) -> Gauges {
        let children = self.children();
        let operations = children.iter().map(|child| child.operations().count());
        let (queued, running) = operations.fold((0, 0), |(queued, running), count| {
            (queued + count.queued, running + count.running)
        });
        let pressure = self.pressure.sample();
        Gauges {
            queued_operations: queued,
            running_operations: running,
            sessions: self.sessions.live(),
            children: children.len(),
            open_calls: children.iter().map(|child| child.open_calls()).sum(),
            connections: self.metrics.connections(),
            memory_bytes: pressure.memory_bytes,
            load_per_cpu: pressure.load_per_cpu,
        }
    }

    /// Ends a session; when this returns a child of its own is gone. It goes on even if the caller does not.
    pub(crate) async fn end_session(&self, session: Arc<Session>, reason: EndReason) {
        self.sessions.remove(session.id());
        let ended = self.tasks.spawn(async move { session.end(reason).await });
        // An error is a panic in the task, which has been reported.
        let _ = ended.await;
    }

    /// The same without waiting for it.
    pub(crate) fn end_session_later(self: &Arc<Self>, session: Arc<Session>, reason: EndReason) {
        let bridge = Arc::clone(self);
        self.tasks
            .spawn(async move { bridge.end_session(session, reason).await });
    }

    /// The child for a request without a session. One of its own counts as a session.
    pub(crate) async fn child_without_session(
        &self,
        principal: &Principal,
    ) -> Result<BackendLease, RequestError> {
        if let Some(Shared { backend, hub }) = &self.shared {
            hub.note_sessionless();
            return Ok(BackendLease {
                child: backend.child().await?,
                _activity: None,
            });
        }
        let scope = self.roots_rule(principal).default_scope;
        let (backend, activity) = self.sessionless.borrow(principal, scope, &self.sessions)?;
        Ok(BackendLease {
            child: backend.child().await?,
            _activity: Some(activity),
        })
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Starts the shared child, so that the first client does not wait for it.
    pub(crate) fn start_shared(&self) {
        if let Some(Shared { backend, .. }) = &self.shared {
            let backend = Arc::clone(backend);
            self.tasks.spawn(async move { drop(backend.child().await) });
        }
    }

    /// Ends calls that are silent for too long, and sessions that are idle or lost their client, until the bridge stops.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let times = self.settings.times;
        let tick = (times.request.min(times.session_idle) / 4)
            .clamp(Duration::from_millis(20), Duration::from_secs(1));
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let now = Instant::now();
            self.children().iter().for_each(|child| child.cancel_silent(now));
            for (session, reason) in self.sessions.take_expired(times.session_idle) {
                self.end_session_later(session, reason);
            }
            self.sessionless.end_idle(times.session_idle, &self.sessions);
        }
    }

    /// Ends the sessions whose client is confined to another directory now.
    pub(crate) fn end_moved(self: &Arc<Self>) {
        for session in self.sessions.all() {
            if !self.auth.confines_as_before(session.principal()) {
                self.end_session_later(session, EndReason::Moved);
            }
        }
    }

    /// Waits for requests and operations to end, until `timeout` or `at_once`; what still runs is then interrupted, and calls
    /// that wait for it get what there is. New work is refused meanwhile.
    pub(crate) async fn drain(&self, timeout: Duration, at_once: &CancellationToken) {
        let has_operations = |child: &Arc<Child>| child.operations().count() != OperationCount::default();
        let is_busy = |child: &Arc<Child>| child.open_calls() > 0 || has_operations(child);
        let all_done = async |deadline: Instant| {
            while self.children().iter().any(is_busy) && Instant::now() < deadline {
                tokio::time::sleep(DRAIN_TICK).await;
            }
        };
        let _ = at_once
            .run_until_cancelled(all_done(Instant::now() + timeout))
            .await;
        let children = self.children();
        let running = children.iter().filter(|child| has_operations(child));
        let params = json!({ "reason": SHUTTING_DOWN, "end": "interrupted" });
        let stops = running.map(|child| child.ask_about_operations(STOP_OPERATIONS, &params, STOP_TIMEOUT));
        for refused in join_all(stops).await.into_iter().filter_map(Result::err) {
            tracing::warn!(reason = %refused, "a backend did not stop its operations");
        }
        all_done(Instant::now() + LAST_ANSWERS_TIMEOUT).await;
    }

    /// Ends everything; when this returns no child is left.
    pub(crate) async fn end(&self) {
        let sessions = self.sessions.take_all();
        join_all(sessions.iter().map(|session| session.end(EndReason::Shutdown))).await;
        // Complete, since no more are admitted: one that is just being added is waited for here.
        let of_sessionless = self.sessionless.backends();
        let shared = self.shared.iter().map(|shared| &shared.backend);
        let stops = of_sessionless
            .iter()
            .chain(shared)
            .map(|backend| backend.stop(CallFailure::Stopped));
        join_all(stops).await;
        self.tasks.close();
        self.tasks.wait().await;
        self.audit.record("server_stopped", json!({}));
        let (audit, echo) = (Arc::clone(&self.audit), self.spawner.limits.echo.clone());
        let settle = move || {
            audit.settle();
            if let Some(echo) = echo {
                echo.settle();
            }
        };
        // A panic there has been reported.
        let _ = tokio::task::spawn_blocking(settle).await;
    }

    pub(crate) fn children(&self) -> Vec<Arc<Child>> {
        let own = self.shared.iter().map(|shared| Arc::clone(&shared.backend));
        let mut children: Vec<Arc<Child>> = own
            .chain(self.sessionless.backends())
            .filter_map(|backend| backend.running())
            .collect();
        if !self.is_shared() {
            children.extend(self.sessions.all().iter().filter_map(|session| session.running()));
        }
        children
    }

    fn roots_rule(&self, principal: &Principal) -> RootsRule {
        match &principal.scope {
            Some(scope) => RootsRule {
                default_scope: scope.to_owned(),
                within: Some(scope.to_owned()),
            },
            None => RootsRule {
                default_scope: self.settings.default_scope.clone(),
                within: None,
            },
        }
    }
}
