//! Messages from the client of a session: `initialize`, notifications and answers.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::error::RequestError;
use super::hub::{SubscriptionClaim, Unsubscribe};
use super::initialize_cache::InitializeCache;
use super::kept::RecordChange;
use super::negotiation::{roots_support, with_version};
use super::session::{Service, Session};
use super::state::{Effect, SessionEvent, SessionState};
use crate::child::{Answer, CallOutcome, StartError, is_for_the_bridge};
use ahma_common::envelope::{Envelope, Kind, RpcRequest, error_message, result_message, string_of};

/// Result of a client's `initialize`: a JSON-RPC answer in any case.
#[derive(Debug)]
pub(crate) enum InitializeOutcome {
    Accepted(Bytes),
    /// The child refused. There is no session.
    Declined(Bytes),
}

/// JSON-RPC code of unusable parameters.
const CODE_INVALID_PARAMS: i64 = -32602;

/// The id of the bridge's own question; those of a child have numbers.
const ROOTS_ID: &str = r#""ahma-bridge/roots""#;

impl Session {
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
                    child.cancel_named(self.serial(), envelope);
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
        let answer = isolated.rule.judge(result).await;
        if let Some(result) = result {
            isolated.set_roots(result.get());
            self.note(RecordChange::Roots(result.get().into())).await;
        }
        let effects = self.transition(SessionEvent::RootsAnswered(answer));
        self.carry_out(effects).await;
    }

    /// An answer of the bridge itself, where other clients of a shared child are concerned.
    pub(crate) fn answer_here(&self, request: RpcRequest<'_>) -> Option<Answer> {
        let Service::Shared { hub, .. } = &self.params.service else {
            return None;
        };
        let uri = || request.envelope.uri();
        match request.method {
            "resources/subscribe" => {
                let reason = hub.refuses(self.serial(), &uri()?)?;
                Some(Answer {
                    body: error_message(Some(request.id.get()), CODE_INVALID_PARAMS, &reason),
                    outcome: CallOutcome::RpcError(CODE_INVALID_PARAMS),
                })
            }
            "resources/unsubscribe" => match hub.unsubscribe(self.serial(), &uri()?) {
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
        Some(hub.claim(self.serial(), &request.envelope.uri()?))
    }
}
