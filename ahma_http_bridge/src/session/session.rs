//! One client's session: what arrives from it and what goes to it.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::activity::{Activity, Uses};
use super::asked::Asked;
use super::handshake::{roots_support, with_version};
use super::hub::{Hub, Unsubscribe};
use super::isolated::Isolated;
use super::registry::OpenError;
use super::state::{Effect, EndReason, SessionEvent, SessionState};
use super::waiting::{Place, Waiting};
use super::{Greeter, Outward};
use crate::audit::Audit;
use crate::auth::Principal;
use crate::backend::{Backend, StartError};
use crate::child::{Answer, CallFailure, Child, OwnerId, Provisional, Verdict, is_for_the_bridge};
use crate::envelope::{Envelope, Kind, RpcRequest, error_message, result_message, string_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    StreamableHttp,
    /// The transport of 2024-11-05: every answer goes to the standing stream, whose end is the session's.
    HttpSse,
}

#[derive(Debug)]
pub(crate) struct SessionParams {
    /// Where the end is written down.
    pub(crate) audit: Arc<Audit>,
    pub(crate) principal: Arc<Principal>,
    pub(crate) transport: Transport,
    pub(crate) service: Service,
    /// Requests the client may have open at once.
    pub(crate) max_calls: usize,
}

/// Who serves the session.
#[derive(Debug)]
pub(crate) enum Service {
    Shared {
        backend: Arc<Backend>,
        hub: Arc<Hub>,
        ended: OnceLock<EndReason>,
    },
    Isolated(Box<Isolated>),
}

#[derive(Debug)]
pub(crate) struct Session {
    me: Weak<Self>,
    id: Box<str>,
    serial: OwnerId,
    params: SessionParams,
    pub(crate) outward: Outward,
    version: OnceLock<Box<str>>,
    pub(super) asked: Asked,
    /// Requests of the client that no child has yet.
    waiting: Arc<Waiting>,
    /// One permit for each request the client may have open.
    calls: Arc<Semaphore>,
    uses: Arc<Uses>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("{0}")]
    Ended(EndReason),
    #[error("the session is initialised already")]
    InitializedAlready,
    #[error("{0}")]
    NotReady(&'static str),
    #[error("the session has as many open requests as it may have ({0}); wait for one to be answered")]
    TooManyCalls(usize),
    #[error("the request was cancelled")]
    Cancelled,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Start(#[from] StartError),
}

/// What came of a client's `initialize`: a JSON-RPC answer in any case.
#[derive(Debug)]
pub(crate) enum Greeting {
    Welcome(Bytes),
    /// The child would not have it. There is no session.
    Declined(Bytes),
}

/// How long those who wait for a child may take to hear that there will be none. They are woken already; on a busy
/// machine it is milliseconds.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What JSON-RPC calls parameters that cannot be used.
const CODE_INVALID_PARAMS: i64 = -32602;

/// The id of the bridge's own question; those of a child have numbers.
const ROOTS_ID: &str = r#""ahma-bridge/roots""#;

impl Session {
    pub(crate) fn new(id: String, serial: OwnerId, params: SessionParams) -> Arc<Self> {
        let calls = Arc::new(Semaphore::new(params.max_calls));
        Arc::new_cyclic(|me| {
            if let Service::Shared { hub, .. } = &params.service {
                hub.join(serial, me.clone());
            }
            Self {
                me: me.clone(),
                id: id.into(),
                serial,
                params,
                outward: Outward::new(),
                version: OnceLock::new(),
                asked: Asked::default(),
                waiting: Arc::default(),
                calls,
                uses: Arc::new(Uses::default()),
            }
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn serial(&self) -> OwnerId {
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

    pub(crate) fn isolated(&self) -> Option<&Isolated> {
        match &self.params.service {
            Service::Isolated(isolated) => Some(isolated),
            Service::Shared { .. } => None,
        }
    }

    /// Why the session is over, if it is.
    pub(crate) fn end_reason(&self) -> Option<EndReason> {
        match &self.params.service {
            Service::Shared { ended, .. } => ended.get().cloned(),
            Service::Isolated(isolated) => isolated.end_reason(),
        }
    }

    /// Answers `initialize`.
    pub(crate) async fn initialize(
        &self,
        request: RpcRequest<'_>,
        greeter: &Greeter,
    ) -> Result<Greeting, SessionError> {
        let envelope = request.envelope;
        let (greeting, wanted) = match &self.params.service {
            Service::Shared { backend, .. } => {
                let params = envelope.params().unwrap_or_default();
                let wanted = params
                    .protocol_version
                    .and_then(string_of)
                    .map(|version| version.into_owned());
                let greeted = backend.greeted().await;
                let greeted = greeted.map_err(|error| self.not_started(error))?;
                (greeted.greeting, wanted)
            }
            Service::Isolated(isolated) => {
                isolated.set_initialize(envelope.text());
                let event = SessionEvent::Initialize(roots_support(envelope));
                let greeted = match isolated.transition(event, &self.me).first() {
                    Some(Effect::Greet) => greeter.greeting(envelope).await,
                    Some(Effect::StartChild(_)) => {
                        let greeted = self.backend()?.greeted().await;
                        greeted.map(|greeted| greeted.greeting)
                    }
                    Some(Effect::AskRoots | Effect::StopChild) | None => {
                        return Err(self.over().unwrap_or(SessionError::InitializedAlready));
                    }
                };
                match greeted {
                    Ok(greeting) => (greeting, None),
                    // It was the client's own request, with its id, so the answer is the client's too.
                    Err(StartError::Refused(answer)) if matches!(answer.verdict, Verdict::RpcError(_)) => {
                        return Ok(Greeting::Declined(answer.body));
                    }
                    Err(error) => return Err(self.not_started(error)),
                }
            }
        };
        let (result, version) = with_version(&greeting, wanted.as_deref());
        let _ = self.version.set(version.into());
        Ok(Greeting::Welcome(result_message(request.id.get(), &result)))
    }

    /// A place for a request whose child is not there yet.
    pub(crate) fn wait_as(&self, id: &RawValue) -> Place {
        self.waiting.enter(id.get())
    }

    /// The child for a request that waits for it, unless its client takes it back.
    pub(crate) async fn ready_for(
        &self,
        place: &Place,
        patience: Duration,
    ) -> Result<Arc<Child>, SessionError> {
        place
            .unless_cancelled(self.ready(patience))
            .await
            .unwrap_or_else(|| Err(self.over().unwrap_or(SessionError::Cancelled)))
    }

    /// The child that serves this session's requests; waits for the scope to be known.
    async fn ready(&self, patience: Duration) -> Result<Arc<Child>, SessionError> {
        match &self.params.service {
            Service::Shared { backend, ended, .. } => match ended.get() {
                Some(reason) => Err(SessionError::Ended(reason.clone())),
                None => backend.child().await.map_err(|error| self.not_started(error)),
            },
            Service::Isolated(isolated) => {
                let mut states = isolated.watch();
                let decided = |state: &SessionState| {
                    matches!(state, SessionState::Locked { .. } | SessionState::Ended { .. })
                };
                let in_time = tokio::time::timeout(patience, states.wait_for(decided))
                    .await
                    .is_ok();
                if !in_time {
                    return Err(SessionError::NotReady(waiting_for(&isolated.state())));
                }
                if let Some(over) = self.over() {
                    return Err(over);
                }
                let child = self.backend()?.child().await;
                child.map_err(|error| self.not_started(error))
            }
        }
    }

    /// A place for one more open request.
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, SessionError> {
        Arc::clone(&self.calls)
            .try_acquire_owned()
            .map_err(|_| SessionError::TooManyCalls(self.params.max_calls))
    }

    /// The child if requests can be passed on right now.
    pub(crate) fn running(&self) -> Option<Arc<Child>> {
        self.over().is_none().then(|| self.latest_child()).flatten()
    }

    fn latest_child(&self) -> Option<Arc<Child>> {
        match &self.params.service {
            Service::Shared { backend, .. } => backend.running(),
            Service::Isolated(isolated) => isolated.backend()?.running(),
        }
    }

    /// Takes a notification from the client.
    pub(crate) async fn notified(&self, envelope: &Envelope<'_>) {
        match (envelope.method().unwrap_or_default(), self.isolated()) {
            ("notifications/initialized", Some(isolated)) => {
                for effect in isolated.transition(SessionEvent::Initialized, &self.me) {
                    if effect == Effect::AskRoots {
                        let ask = format!(r#"{{"jsonrpc":"2.0","id":{ROOTS_ID},"method":"roots/list"}}"#);
                        self.push(Bytes::from(ask));
                    }
                }
            }
            ("notifications/roots/list_changed", Some(isolated)) => {
                let before = isolated.state();
                let effects = isolated.transition(SessionEvent::RootsListChanged, &self.me);
                if let (SessionState::Locked { scope }, [Effect::StopChild]) = (before, &*effects) {
                    tracing::error!(
                        session = self.id(),
                        ?scope,
                        "the client changed its roots after the scope was locked; the session is ended"
                    );
                }
                self.carry_out(effects).await;
            }
            // A shared child was initialised by the bridge, and was promised no roots.
            ("notifications/initialized" | "notifications/roots/list_changed", None) => {}
            ("notifications/cancelled", _) => {
                if let Some(id) = envelope.params().ok().and_then(|params| params.request_id) {
                    self.waiting.cancel(id.get());
                }
                if let Some(child) = self.running() {
                    child.cancel_named(self.serial, envelope);
                }
            }
            (method, _) if is_for_the_bridge(method) => {
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
        if isolated.state() != SessionState::AskingRoots {
            return;
        }
        let answer = isolated.judge(result).await;
        if let Some(result) = result {
            isolated.set_roots(result.get());
        }
        let effects = isolated.transition(SessionEvent::RootsAnswered(answer), &self.me);
        self.carry_out(effects).await;
    }

    async fn carry_out(&self, effects: Vec<Effect>) {
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
                    self.stop().await;
                    self.record_end();
                }
                Effect::Greet | Effect::AskRoots => {}
            }
        }
    }

    /// Sends the client something that belongs to none of its requests.
    pub(crate) fn push(&self, message: Bytes) {
        self.outward.push(message);
    }

    /// What the bridge answers itself, because other clients of a shared child are concerned.
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
                    verdict: Verdict::RpcError(CODE_INVALID_PARAMS),
                })
            }
            "resources/unsubscribe" => match hub.unsubscribe(self.serial, &uri()?) {
                Unsubscribe::AnswerHere => Some(Answer {
                    body: result_message(request.id.get(), "{}"),
                    verdict: Verdict::Result,
                }),
                Unsubscribe::PassOn => None,
            },
            _ => None,
        }
    }

    /// The subscription that a request to a shared child is about.
    pub(crate) fn subscribing(&self, request: RpcRequest<'_>) -> Option<Box<dyn Provisional>> {
        let Service::Shared { hub, .. } = &self.params.service else {
            return None;
        };
        if request.method != "resources/subscribe" {
            return None;
        }
        Some(Box::new(hub.claim(self.serial, &request.envelope.uri()?)))
    }

    /// Ends the session. When this returns, a child of its own is gone with all commands; a shared one has been told
    /// that the client is gone.
    pub(crate) async fn end(&self, reason: EndReason) {
        match &self.params.service {
            Service::Shared { ended, .. } => {
                if ended.set(reason).is_ok() {
                    self.stop().await;
                    self.record_end();
                }
            }
            Service::Isolated(isolated) => {
                let effects = isolated.transition(SessionEvent::Closed(reason), &self.me);
                self.carry_out(effects).await;
            }
        }
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
                    child.cancel_owner(self.serial, "the session ended");
                    orphaned
                        .iter()
                        .for_each(|uri| Hub::resubscribe(&child, "resources/unsubscribe", uri));
                }
            }
            Service::Isolated(isolated) => {
                if let Some(backend) = isolated.backend() {
                    backend.stop(CallFailure::SessionEnded).await;
                }
            }
        }
        // No child will come for those who wait. They hear why before their streams end.
        let _ = tokio::time::timeout(LAST_WORDS, self.waiting.nobody()).await;
        self.outward.close();
    }

    fn backend(&self) -> Result<Arc<Backend>, SessionError> {
        let backend = self.isolated().and_then(Isolated::backend);
        backend.ok_or(SessionError::NotReady("the session has no server process"))
    }

    /// A child that was stopped belonged to a session that is over, and that is what its client should hear.
    fn not_started(&self, error: StartError) -> SessionError {
        match (&error, self.over()) {
            (StartError::Stopped, Some(over)) => over,
            _ => error.into(),
        }
    }

    /// Why nothing more is done for the client, if so.
    pub(crate) fn over(&self) -> Option<SessionError> {
        self.end_reason().map(SessionError::Ended)
    }

    /// Marks the session as in use while the guard lives.
    pub(crate) fn use_it(&self) -> Activity {
        Activity::begin(&self.uses)
    }

    /// How long nobody has used the session; zero while somebody does.
    pub(crate) fn idle_for(&self) -> Duration {
        self.uses.idle_for()
    }
}

fn waiting_for(state: &SessionState) -> &'static str {
    match state {
        SessionState::Opened => "the session waits for `initialize`",
        SessionState::Greeted => "the session waits for `notifications/initialized`",
        SessionState::AskingRoots => {
            "the client offers roots but has not answered roots/list; open the GET stream to receive the question"
        }
        SessionState::Locked { .. } | SessionState::Ended { .. } => "the server process is not ready",
    }
}
