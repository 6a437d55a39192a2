//! One client's session: its state, its backend, and what goes to it. `from_client` takes what arrives, `ending` ends it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::error::RequestError;
use super::hub::Hub;
use super::isolated::Isolated;
use super::kept::KeptSession;
use super::questions::OpenQuestions;
use super::state::{Effect, EndReason, SessionEvent, SessionState};
use super::streams::SessionStreams;
use super::waiting::{WaitingRequest, WaitingRequests};
use crate::activity::{Activity, Uses};
use crate::audit::Audit;
use crate::auth::Principal;
use crate::child::{Backend, CallFailure, Child, ClientId, StartError};
use crate::operations::OperationOwner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    StreamableHttp,
    /// The transport of 2024-11-05: every answer goes to the standing stream, without which the client cannot be reached.
    HttpSse,
}

#[derive(Debug)]
pub(crate) struct SessionParams {
    /// Records the end.
    pub(crate) audit: Arc<Audit>,
    pub(crate) principal: Arc<Principal>,
    pub(crate) transport: Transport,
    pub(crate) service: Service,
    /// Requests the client may have open at once.
    pub(crate) max_calls: usize,
    /// Number of the first stream.
    pub(crate) first_stream: u64,
}

/// The backend of a session.
#[derive(Debug)]
pub(crate) enum Service {
    Shared { backend: Arc<Backend>, hub: Arc<Hub> },
    Isolated(Box<Isolated>),
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(super) me: Weak<Self>,
    id: Box<str>,
    serial: ClientId,
    pub(super) params: SessionParams,
    pub(super) state: watch::Sender<SessionState>,
    pub(crate) streams: SessionStreams,
    version: OnceLock<Box<str>>,
    opened: OffsetDateTime,
    /// The client's description of itself, known since it sent `initialize`.
    client: OnceLock<ClientDetails>,
    program: OnceLock<Arc<str>>,
    pub(super) asked: OpenQuestions,
    /// Requests of the client that no child has yet.
    pub(super) waiting: Arc<WaitingRequests>,
    /// One permit for each request the client may have open.
    calls: Arc<Semaphore>,
    uses: Arc<Uses>,
    /// Set for good when a client that cannot come back is gone.
    is_disconnected: AtomicBool,
    /// Its record, if other bridges may go on with it.
    kept: OnceLock<KeptSession>,
}

/// The client, as operators see it.
#[derive(Debug)]
pub(crate) struct ClientDetails {
    /// Name and version, as it gave them.
    pub(crate) info: Value,
    pub(crate) address: Option<SocketAddr>,
}

/// The name of a program goes with every request.
const MAX_PROGRAM_CHARS: usize = 100;

impl Session {
    pub(crate) fn new(id: String, serial: ClientId, params: SessionParams) -> Arc<Self> {
        let calls = Arc::new(Semaphore::new(params.max_calls));
        let streams = SessionStreams::new(params.first_stream);
        Arc::new_cyclic(|me| {
            let state = match &params.service {
                Service::Shared { hub, .. } => {
                    hub.join(serial, me.clone());
                    SessionState::Shared
                }
                Service::Isolated(_) => SessionState::Opened,
            };
            Self {
                me: me.clone(),
                id: id.into(),
                serial,
                params,
                state: watch::Sender::new(state),
                streams,
                version: OnceLock::new(),
                opened: OffsetDateTime::now_utc(),
                client: OnceLock::new(),
                program: OnceLock::new(),
                asked: OpenQuestions::default(),
                waiting: Arc::default(),
                calls,
                uses: Arc::new(Uses::default()),
                is_disconnected: AtomicBool::new(false),
                kept: OnceLock::new(),
            }
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn serial(&self) -> ClientId {
        self.serial
    }

    pub(crate) fn principal(&self) -> &Arc<Principal> {
        &self.params.principal
    }

    pub(crate) fn transport(&self) -> Transport {
        self.params.transport
    }

    /// The protocol revision agreed on, once it is.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.get().map(|version| &**version)
    }

    pub(super) fn set_version(&self, version: Box<str>) {
        // It is agreed on once.
        let _ = self.version.set(version);
    }

    pub(crate) fn kept(&self) -> Option<&KeptSession> {
        self.kept.get()
    }

    pub(super) fn set_kept(&self, kept: KeptSession) {
        // A session is opened, or taken over, once.
        let _ = self.kept.set(kept);
    }

    pub(crate) fn isolated(&self) -> Option<&Isolated> {
        match &self.params.service {
            Service::Isolated(isolated) => Some(isolated),
            Service::Shared { .. } => None,
        }
    }

    /// The reason why the session is over, if it is.
    pub(crate) fn end_reason(&self) -> Option<EndReason> {
        match &*self.state.borrow() {
            SessionState::Ended { reason } => Some(reason.clone()),
            _ => None,
        }
    }

    /// Moves the state on. The backend is in place before the state that needs it is visible, so the change is atomic
    /// for waiting requests.
    pub(super) fn transition(&self, event: SessionEvent) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.state.send_modify(|state| {
            let (next, wanted) = state.clone().on(event);
            for effect in &wanted {
                if let (Effect::StartChild(scope), Some(isolated)) = (effect, self.isolated()) {
                    isolated.prepare(scope.clone(), &self.me);
                }
            }
            *state = next;
            effects = wanted;
        });
        effects
    }

    /// A place for a request whose child is not there yet.
    pub(crate) fn wait_as(&self, id: &RawValue) -> WaitingRequest {
        self.waiting.enter(id.get())
    }

    /// The child for a request that waits for it, unless its client takes it back.
    pub(crate) async fn ready_for(
        &self,
        place: &WaitingRequest,
        timeout: Duration,
    ) -> Result<Arc<Child>, RequestError> {
        place
            .unless_cancelled(self.ready(timeout))
            .await
            .unwrap_or_else(|| Err(self.over().unwrap_or(CallFailure::Cancelled.into())))
    }

    /// The child that serves this session's requests; waits for the scope to be known.
    pub(super) async fn ready(&self, timeout: Duration) -> Result<Arc<Child>, RequestError> {
        let mut states = self.state.subscribe();
        let decided = tokio::time::timeout(timeout, states.wait_for(SessionState::is_decided))
            .await
            .is_ok();
        if !decided {
            return Err(RequestError::NotReady(waiting_for(&self.state.borrow())));
        }
        if let Some(over) = self.over() {
            return Err(over);
        }
        let child = self.backend()?.child().await;
        child.map_err(|error| self.not_started(error))
    }

    /// A place for one more open request.
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, RequestError> {
        Arc::clone(&self.calls)
            .try_acquire_owned()
            .map_err(|_| RequestError::TooManySessionCalls(self.params.max_calls))
    }

    /// The child if requests can be passed on right now.
    pub(crate) fn running(&self) -> Option<Arc<Child>> {
        let backend = self.backend().ok().filter(|_| self.over().is_none())?;
        backend.running()
    }

    pub(super) async fn carry_out(&self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::StartChild(scope) => {
                    tracing::info!(session = self.id(), ?scope, "scope locked");
                    if let Ok(backend) = self.backend() {
                        // Eagerly, so that the first request finds it; that request reports a failure.
                        tokio::spawn(async move { drop(backend.child().await) });
                    }
                }
                Effect::StopChild => {
                    if self.end_reason().is_some_and(|reason| reason.ends_everywhere()) {
                        self.remove_record().await;
                    }
                    self.stop().await;
                    self.record_end();
                }
                Effect::InitializeDeferred | Effect::AskRoots => {}
            }
        }
    }

    /// Sends the client something that belongs to none of its requests.
    pub(crate) fn push(&self, message: Bytes) {
        self.streams.push(message);
    }

    pub(super) fn backend(&self) -> Result<Arc<Backend>, RequestError> {
        let backend = match &self.params.service {
            Service::Shared { backend, .. } => Some(Arc::clone(backend)),
            Service::Isolated(isolated) => isolated.backend(),
        };
        backend.ok_or(RequestError::NotReady("the session has no server process"))
    }

    /// The error of a start. A child that was stopped belonged to a session that is over, and the client is told that.
    pub(super) fn not_started(&self, error: StartError) -> RequestError {
        match (&error, self.over()) {
            (StartError::Stopped, Some(over)) => over,
            _ => error.into(),
        }
    }

    /// The error for every request after the end.
    pub(crate) fn over(&self) -> Option<RequestError> {
        self.end_reason().map(RequestError::Ended)
    }

    /// Marks the session as in use while the guard lives.
    pub(crate) fn use_it(&self) -> Activity {
        Activity::begin(&self.uses)
    }

    pub(crate) fn set_client(&self, client: ClientDetails) {
        // It introduces itself once.
        if let Some(name) = client.info["name"].as_str() {
            let name: String = name.chars().take(MAX_PROGRAM_CHARS).collect();
            let _ = self.program.set(name.into());
        }
        let _ = self.client.set(client);
    }

    /// Name that the client's program gives itself.
    pub(crate) fn program(&self) -> Option<Arc<str>> {
        self.program.get().map(Arc::clone)
    }

    /// The session as an operator sees it.
    pub(crate) fn described(&self) -> Value {
        let client = self.client.get();
        let scope = match &*self.state.borrow() {
            SessionState::Locked { scope } => Some(scope.clone()),
            _ => None,
        };
        json!({
            "id": self.id(),
            "principal": &*self.principal().name,
            "client": client.map(|client| &client.info),
            "address": client.and_then(|client| client.address).map(|address| address.to_string()),
            "since": self.opened.format(&Rfc3339).unwrap_or_default(),
            "scope": scope,
            "protocol": self.version(),
            "idle_ms": u64::try_from(self.idle_for().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// The session as the owner of an operation, which keeps it in use.
    pub(super) fn as_owner(&self) -> OperationOwner {
        OperationOwner {
            session: Some(self.id().into()),
            activity: Some(self.use_it()),
        }
    }

    /// The client is gone and cannot come back; the session ends when nothing of it is open or runs.
    pub(crate) fn disconnect(&self) {
        self.is_disconnected.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        self.is_disconnected.load(Ordering::Relaxed)
    }

    /// The reason to end a session that has been unused for this long, if there is one.
    pub(crate) fn expiry(&self, idle: Duration) -> Option<EndReason> {
        match self.idle_for() {
            Duration::ZERO => None,
            _ if self.is_disconnected() => Some(EndReason::Disconnected),
            unused if unused >= idle => Some(EndReason::Idle),
            _ => None,
        }
    }

    /// Time since the last use; zero while in use or while an operation runs.
    pub(crate) fn idle_for(&self) -> Duration {
        self.uses.idle_for()
    }
}

fn waiting_for(state: &SessionState) -> &'static str {
    match state {
        SessionState::Opened => "the session waits for `initialize`",
        SessionState::AwaitingInitialized => "the session waits for `notifications/initialized`",
        SessionState::AskingRoots => {
            "the client offers roots but has not answered roots/list; open the GET stream to receive the question"
        }
        SessionState::Locked { .. } | SessionState::Shared | SessionState::Ended { .. } => {
            "the server process is not ready"
        }
    }
}
