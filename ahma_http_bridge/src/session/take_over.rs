//! A session that several bridges share: its record is written here, and sessions of other bridges are continued.

use std::sync::Arc;
use std::time::Duration;

use ahma_common::envelope::{Envelope, RpcRequest, string_of};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::error::RequestError;
use super::hub::Unsubscribe;
use super::kept::{KeptSession, Look, RecordChange, SessionRecord};
use super::negotiation::roots_support;
use super::session::{Service, Session};
use super::state::{Effect, SessionEvent};
use crate::child::{Answer, CallOutcome, CallParams, Reply};
use crate::session_store::{SessionStore, StoreError};

/// Time for a child to take over what the client asked for at another bridge.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(30);

impl Session {
    /// Records a session that a client has opened here, so that it can go on elsewhere. It can do so later, too, if the
    /// store does not answer now.
    pub(crate) async fn keep(&self, store: &Arc<dyn SessionStore>, initialize: &Envelope<'_>) {
        let version = self.version().unwrap_or_default();
        let record = SessionRecord::opened(&*self.principal().name, version, initialize.text());
        let kept = KeptSession::new(Arc::clone(store), self.id(), record);
        if let Err(error) = kept.touch().await {
            tracing::warn!(session = self.id(), %error, "other servers do not know a session yet");
        }
        self.set_kept(kept);
    }

    /// Makes this the session of a record that another bridge has written.
    pub(super) fn belongs_to(&self, kept: KeptSession) {
        self.set_version(kept.record().version.clone());
        self.set_kept(kept);
    }

    /// Notes what the client has said.
    pub(super) async fn note(&self, change: RecordChange) {
        if let Some(kept) = self.kept() {
            self.reported(kept.change(&change).await).await;
        }
    }

    /// Notes what a request of the client asks for beyond its answer. A child that refuses it will do so again.
    pub(crate) async fn note_request(&self, request: RpcRequest<'_>) {
        if self.kept().is_none() {
            return;
        }
        let uri = || Some(request.envelope.uri()?.into());
        let change = match request.method {
            "resources/subscribe" => uri().map(RecordChange::Subscribed),
            "resources/unsubscribe" => uri().map(RecordChange::Unsubscribed),
            "logging/setLevel" => level_of(request.envelope).map(RecordChange::LogLevel),
            _ => None,
        };
        if let Some(change) = change {
            self.note(change).await;
        }
    }

    /// Keeps the record from growing old. False if the session was ended elsewhere.
    pub(crate) async fn touch_record(&self) -> bool {
        match self.kept() {
            Some(kept) => self.reported(kept.touch().await).await,
            None => true,
        }
    }

    /// Takes over what the client has said at other bridges. False if the session was ended there. A store that does not
    /// answer changes nothing.
    pub(crate) async fn look_again(&self) -> bool {
        match self.kept() {
            Some(kept) => self.reported(kept.look().await).await,
            None => true,
        }
    }

    pub(super) async fn remove_record(&self) {
        if let Some(kept) = self.kept()
            && let Err(error) = kept.remove().await
        {
            tracing::warn!(session = self.id(), %error, "other servers may go on with a session that ended here");
        }
    }

    async fn reported(&self, look: Result<Look, StoreError>) -> bool {
        match look {
            Ok(Look::Gone) => false,
            Ok(Look::Current) => {
                self.catch_up().await;
                true
            }
            Err(error) => {
                tracing::debug!(session = self.id(), %error, "the record of a session cannot be used; trying again later");
                true
            }
        }
    }

    /// Continues the session of another bridge.
    pub(crate) async fn go_on(&self) {
        if let Some(isolated) = self.isolated()
            && let Some(record) = self.kept().map(KeptSession::record)
            && let Ok(initialize) = Envelope::parse(record.initialize.as_bytes())
        {
            isolated.set_initialize(&record.initialize);
            // Its answer was given already.
            let effects = self.transition(SessionEvent::Initialize {
                roots: roots_support(&initialize),
                default_scope: isolated.rule.default_scope.clone(),
            });
            self.carry_out(effects).await;
        }
        self.repeat_changes().await;
    }

    /// Repeats here what the client has said at other bridges, even if the request that caused it is gone.
    async fn catch_up(&self) {
        let Some(session) = self.me.upgrade() else { return };
        if self.kept().is_some_and(|kept| !kept.unrepeated().is_empty()) {
            // An error is a panic in the task, which has been reported.
            let _ = tokio::spawn(async move { session.repeat_changes().await }).await;
        }
    }

    async fn repeat_changes(&self) {
        let Some(kept) = self.kept() else { return };
        let Some(_turn) = kept.try_repeating() else { return };
        for change in kept.unrepeated() {
            match self.repeat(&change).await {
                Ok(()) => kept.note_repeated(&change),
                // At the next look it is tried again.
                Err(error) => return tracing::debug!(%error, "a session cannot be caught up with yet"),
            }
        }
    }

    async fn repeat(&self, change: &RecordChange) -> Result<(), RequestError> {
        match change {
            RecordChange::Initialized => self.initialized(),
            RecordChange::Roots(roots) => {
                // Judged again: what this machine has there, and what the client may do, is known here only.
                let effects = self.answer_for_client(roots).await;
                self.carry_out(effects).await;
            }
            RecordChange::LogLevel(level) => {
                self.ask_for_client("logging/setLevel", json!({ "level": level }))
                    .await?;
            }
            RecordChange::Subscribed(uri) => {
                let claim = match &self.params.service {
                    Service::Shared { hub, .. } => Some(hub.claim(self.serial(), uri)),
                    Service::Isolated(_) => None,
                };
                let answer = self
                    .ask_for_client("resources/subscribe", json!({ "uri": uri }))
                    .await?;
                if let (Some(claim), CallOutcome::Result) = (claim, answer.outcome) {
                    claim.granted();
                }
            }
            RecordChange::Unsubscribed(uri) => {
                let is_done = matches!(&self.params.service, Service::Shared { hub, .. }
                    if hub.unsubscribe(self.serial(), uri) == Unsubscribe::AnswerHere);
                if !is_done {
                    self.ask_for_client("resources/unsubscribe", json!({ "uri": uri }))
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Gives the answer to `roots/list` that the client gave before.
    async fn answer_for_client(&self, roots: &str) -> Vec<Effect> {
        let Some(isolated) = self.isolated() else {
            return Vec::new();
        };
        let result: Option<&RawValue> = serde_json::from_str(roots).ok();
        let answer = isolated.rule.judge(result).await;
        isolated.set_roots(roots);
        // It is not asked once more.
        self.transition(SessionEvent::Initialized);
        self.transition(SessionEvent::RootsAnswered(answer))
    }

    /// Asks the child in the name of the client, which is not told.
    async fn ask_for_client(&self, method: &str, params: Value) -> Result<Answer, RequestError> {
        if !self.state.borrow().is_decided() {
            return Err(RequestError::NotReady("its directory is not known yet"));
        }
        let child = self.ready(TAKE_OVER_TIMEOUT).await?;
        let (tx, answer) = oneshot::channel();
        let call = CallParams {
            client: self.serial(),
            principal: self.principal().identity(),
            program: self.program(),
            tools: self.principal().tools.clone(),
            ..CallParams::of_bridge(Reply::Once(tx), TAKE_OVER_TIMEOUT)
        };
        child.request(method, &params, call);
        Ok(answer.await.unwrap_or_else(|_| Answer::lost()))
    }

    /// Announces a change of everything the client subscribed to: it cannot get what it missed at another bridge.
    pub(crate) fn announce_gap(&self) {
        let Some(record) = self.kept().map(KeptSession::record) else {
            return;
        };
        for uri in &record.subscriptions {
            let update = json!({
                "jsonrpc": "2.0",
                "method": "notifications/resources/updated",
                "params": { "uri": uri },
            });
            self.push(update.to_string().into());
        }
    }
}

fn level_of(envelope: &Envelope<'_>) -> Option<Box<str>> {
    #[derive(serde::Deserialize)]
    struct Level<'a> {
        #[serde(borrow)]
        level: &'a RawValue,
    }
    let params = envelope.params_object()?;
    let Level { level } = serde_json::from_str(params.get()).ok()?;
    string_of(level).map(|level| level.as_ref().into())
}
