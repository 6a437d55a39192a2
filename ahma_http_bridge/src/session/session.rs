//! One client's session: what arrives from it and what goes to it.

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
use super::hub::{Hub, SubscriptionClaim, Unsubscribe};
use super::initialize_cache::InitializeCache;
use super::isolated::Isolated;
use super::kept::{KeptSession, RecordChange};
use super::negotiation::{roots_support, with_version};
use super::questions::OpenQuestions;
use super::state::{Effect, EndReason, SessionEvent, SessionState};
use super::streams::SessionStreams;
use super::waiting::{WaitingRequest, WaitingRequests};
use crate::activity::{Activity, Uses};
use crate::audit::Audit;
use crate::auth::Principal;
use crate::child::{
    Answer, Backend, CallFailure, CallOutcome, Child, ClientId, StartError, is_for_the_bridge,
};
use crate::operations::OperationOwner;
use ahma_common::envelope::{Envelope, Kind, RpcRequest, error_message, result_message, string_of};

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
    params: SessionParams,
    state: watch::Sender<SessionState>,
    pub(crate) streams: SessionStreams,
    version: OnceLock<Box<str>>,
    opened: OffsetDateTime,
    /// The client's description of itself, known since it sent `initialize`.
    client: OnceLock<ClientDetails>,
    pub(super) asked: OpenQuestions,
    /// Requests of the client that no child has yet.
    waiting: Arc<WaitingRequests>,
    /// One permit for each request the client may have open.
    calls: Arc<Semaphore>,
    uses: Arc<Uses>,
    /// Set for good when a client that cannot come back is gone.
    is_disconnected: AtomicBool,
    /// Its record, if other bridges may go on with it.
    kept: OnceLock<KeptSession>,
}

/// The client, for those who look after the server.
#[derive(Debug)]
pub(crate) struct ClientDetails {
    /// Name and version, as it gave them.
    pub(crate) info: Value,
    pub(crate) address: Option<SocketAddr>,
}

/// Result of a client's `initialize`: a JSON-RPC answer in any case.
#[derive(Debug)]
pub(crate) enum InitializeOutcome {
    Accepted(Bytes),
    /// The child would not have it. There is no session.
    Declined(Bytes),
}

/// Time for waiting requests to learn that there will be no child. They are woken already; on a busy
/// machine it is milliseconds.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for the operations of a session to end and be reported: a command has five seconds for its last words. The end of
/// its child ends them in any case.
const OPERATIONS_END_TIMEOUT: Duration = Duration::from_secs(8);

/// JSON-RPC code of unusable parameters.
const CODE_INVALID_PARAMS: i64 = -32602;

/// The id of the bridge's own question; those of a child have numbers.
const ROOTS_ID: &str = r#""ahma-bridge/roots""#;

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

    pub(super) fn service(&self) -> &Service {
        &self.params.service
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

    /// Answers `initialize`.
    pub(crate) async fn initialize(
        &self,
        request: RpcRequest<'_>,
        initialize_cache: &InitializeCache,
    ) -> Result<InitializeOutcome, RequestError> {
        let envelope = request.envelope;
        let (result, wanted) = match &self.params.service {
            Service::Shared { backend, .. } => {
                let params = envelope.params().unwrap_or_default();
                let wanted = params
                    .protocol_version
                    .and_then(string_of)
                    .map(|version| version.into_owned());
                let initialized = backend.initialized().await;
                let initialized = initialized.map_err(|error| self.not_started(error))?;
                (initialized.initialize_result, wanted)
            }
            Service::Isolated(isolated) => {
                isolated.set_initialize(envelope.text());
                let event = SessionEvent::Initialize {
                    roots: roots_support(envelope),
                    default_scope: isolated.rule.default_scope.clone(),
                };
                let answered = match self.transition(event).first() {
                    Some(Effect::InitializeDeferred) => initialize_cache.result_for(envelope).await,
                    Some(Effect::StartChild(_)) => {
                        let initialized = self.backend()?.initialized().await;
                        initialized.map(|initialized| initialized.initialize_result)
                    }
                    Some(Effect::AskRoots | Effect::StopChild) | None => {
                        return Err(self.over().unwrap_or(RequestError::InitializedAlready));
                    }
                };
                match answered {
                    Ok(result) => (result, None),
                    // It was the client's own request, with its id, so the answer is the client's too.
                    Err(StartError::Refused(answer))
                        if matches!(answer.outcome, CallOutcome::RpcError(_)) =>
                    {
                        return Ok(InitializeOutcome::Declined(answer.body));
                    }
                    Err(error) => return Err(self.not_started(error)),
                }
            }
        };
        let (result, version) = with_version(&result, wanted.as_deref());
        self.set_version(version.into());
        Ok(InitializeOutcome::Accepted(result_message(
            request.id.get(),
            &result,
        )))
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
        self.over().is_none().then(|| self.latest_child()).flatten()
    }

    fn latest_child(&self) -> Option<Arc<Child>> {
        self.backend().ok()?.running()
    }

    /// Takes a notification from the client.
    pub(crate) async fn notified(&self, envelope: &Envelope<'_>) {
        match envelope.method().unwrap_or_default() {
            "notifications/initialized" => {
                self.note(RecordChange::Initialized).await;
                self.initialized();
            }
            "notifications/roots/list_changed" => {
                let before = self.state.borrow().clone();
                let effects = self.transition(SessionEvent::RootsListChanged);
                if let (SessionState::Locked { scope }, [Effect::StopChild]) = (before, &*effects) {
                    tracing::error!(
                        session = self.id(),
                        ?scope,
                        "the client changed its roots after the scope was locked; the session is ended"
                    );
                }
                self.carry_out(effects).await;
            }
            "notifications/cancelled" => {
                if let Some(id) = envelope.params().ok().and_then(|params| params.request_id) {
                    self.waiting.cancel(id.get());
                }
                if let Some(child) = self.running() {
                    child.cancel_named(self.serial, envelope);
                }
            }
            method if is_for_the_bridge(method) => {
                tracing::warn!(session = self.id(), "dropped what is not for a client to say");
            }
            _ => {
                if let Some(child) = self.running() {
                    // A child that is gone has nothing to be told.
                    let _ = child.send(envelope.text());
                }
            }
        }
    }

    /// The client is ready, and may be asked for its roots.
    pub(super) fn initialized(&self) {
        for effect in self.transition(SessionEvent::Initialized) {
            if effect == Effect::AskRoots {
                let ask = format!(r#"{{"jsonrpc":"2.0","id":{ROOTS_ID},"method":"roots/list"}}"#);
                self.push(Bytes::from(ask));
            }
        }
    }

    /// Takes the client's answer to a request of the server.
    pub(crate) async fn answered(&self, envelope: &Envelope<'_>) {
        let Kind::Response { id, error_code } = &envelope.kind else {
            return;
        };
        if id.get() == ROOTS_ID {
            let result = envelope.result().filter(|_| error_code.is_none());
            self.roots_answered(result).await;
        } else if let Some((child, answer)) = self.asked.answer(envelope, id) {
            // A child that is gone waits for no answer.
            let _ = child.send(&String::from_utf8_lossy(&answer));
        }
    }

    async fn roots_answered(&self, result: Option<&RawValue>) {
        let Some(isolated) = self.isolated() else { return };
        if *self.state.borrow() != SessionState::AskingRoots {
            return;
        }
        let answer = isolated.judge(result).await;
        if let Some(result) = result {
            isolated.set_roots(result.get());
            self.note(RecordChange::Roots(result.get().into())).await;
        }
        let effects = self.transition(SessionEvent::RootsAnswered(answer));
        self.carry_out(effects).await;
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

    /// An answer of the bridge itself, where other clients of a shared child are concerned.
    pub(crate) fn answer_here(&self, request: RpcRequest<'_>) -> Option<Answer> {
        let Service::Shared { hub, .. } = &self.params.service else {
            return None;
        };
        let uri = || request.envelope.uri();
        match request.method {
            "resources/subscribe" => {
                let reason = hub.refuses(self.serial, &uri()?)?;
                Some(Answer {
                    body: error_message(Some(request.id.get()), CODE_INVALID_PARAMS, &reason),
                    outcome: CallOutcome::RpcError(CODE_INVALID_PARAMS),
                })
            }
            "resources/unsubscribe" => match hub.unsubscribe(self.serial, &uri()?) {
                Unsubscribe::AnswerHere => Some(Answer {
                    body: result_message(request.id.get(), "{}"),
                    outcome: CallOutcome::Result,
                }),
                Unsubscribe::PassOn => None,
            },
            _ => None,
        }
    }

    /// The subscription that a request to a shared child is about.
    pub(crate) fn subscribing(&self, request: RpcRequest<'_>) -> Option<SubscriptionClaim> {
        let Service::Shared { hub, .. } = &self.params.service else {
            return None;
        };
        if request.method != "resources/subscribe" {
            return None;
        }
        Some(hub.claim(self.serial, &request.envelope.uri()?))
    }

    /// Ends the session. When this returns, a child of its own is gone with all commands; a shared one has been told
    /// that the client is gone.
    pub(crate) async fn end(&self, reason: EndReason) {
        let effects = self.transition(SessionEvent::Closed(reason));
        self.carry_out(effects).await;
    }

    /// Writes down why the session ended, which happens once.
    fn record_end(&self) {
        let outcome = self.end_reason().map(|reason| reason.to_string());
        let principal = &*self.principal().name;
        let fields = json!({ "principal": principal, "session": self.id(), "outcome": outcome });
        self.params.audit.record("session_ended", fields);
    }

    async fn stop(&self) {
        // A child that is just being started is not there to be told, and must not hear of them later.
        self.waiting.cancel_all();
        match &self.params.service {
            Service::Shared { backend, hub, .. } => {
                let orphaned = hub.leave(self.serial);
                if let Some(child) = backend.running() {
                    child.cancel_client(self.serial, &self.why_ended());
                    orphaned
                        .iter()
                        .for_each(|uri| Hub::resubscribe(&child, "resources/unsubscribe", uri));
                }
            }
            Service::Isolated(isolated) => {
                if let Some(backend) = isolated.backend() {
                    // Its operations end because of the session, not because a server process ends.
                    if let Some(child) = backend.running() {
                        child.cancel_client(self.serial, &self.why_ended());
                        let ended = child.operations().all_ended();
                        let _ = tokio::time::timeout(OPERATIONS_END_TIMEOUT, ended).await;
                    }
                    backend.stop(CallFailure::SessionEnded).await;
                }
            }
        }
        // No child will come for those who wait. They hear why before their streams end.
        let _ = tokio::time::timeout(LAST_OUTPUT_TIMEOUT, self.waiting.all_left()).await;
        self.streams.close();
    }

    fn why_ended(&self) -> String {
        let reason = self.end_reason().map(|reason| reason.to_string());
        reason.unwrap_or_else(|| "the session ended".to_owned())
    }

    fn backend(&self) -> Result<Arc<Backend>, RequestError> {
        let backend = match &self.params.service {
            Service::Shared { backend, .. } => Some(Arc::clone(backend)),
            Service::Isolated(isolated) => isolated.backend(),
        };
        backend.ok_or(RequestError::NotReady("the session has no server process"))
    }

    /// A child that was stopped belonged to a session that is over, and that is what its client should hear.
    fn not_started(&self, error: StartError) -> RequestError {
        match (&error, self.over()) {
            (StartError::Stopped, Some(over)) => over,
            _ => error.into(),
        }
    }

    pub(super) fn is_decided(&self) -> bool {
        self.state.borrow().is_decided()
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
        let _ = self.client.set(client);
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
