//! Distribution of the messages of a child that serves many clients.
//!
//! The rule: a message goes to the client it belongs to; what concerns all goes to all; a message for
//! an unknown client is dropped, unless there is only one client it could be for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::Mutex;
use serde_json::json;

use super::session::Session;
use super::subscriptions::Subscriptions;
use crate::child::{CallParams, Child, ChildMessage, ChildSink, ClientId, Reply, named};
use crate::operations::OperationOwner;
use ahma_common::envelope::{Envelope, error_message, result_message};

/// Time that a request of the bridge itself may stay open.
const UNASKED_TIMEOUT: Duration = Duration::from_secs(30);
/// Bounds of a session's subscriptions.
const MAX_URI_BYTES: usize = 8 << 10;
const MAX_SUBSCRIPTIONS: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Hub {
    sessions: DashMap<ClientId, Weak<Session>>,
    subscriptions: Mutex<Subscriptions>,
    /// True if clients without a session were served, too: then a message may be theirs.
    has_sessionless: AtomicBool,
}

/// The way to handle a client's `resources/unsubscribe`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unsubscribe {
    /// Another client still wants the updates; the child must not hear of it.
    AnswerHere,
    PassOn,
}

impl Hub {
    pub(crate) fn join(&self, client: ClientId, session: Weak<Session>) {
        self.sessions.insert(client, session);
    }

    pub(crate) fn note_sessionless(&self) {
        self.has_sessionless.store(true, Ordering::Relaxed);
    }

    /// Forgets a session. Gives back the resources that have no subscriber any more.
    pub(crate) fn leave(&self, client: ClientId) -> Vec<Box<str>> {
        self.sessions.remove(&client);
        self.subscriptions.lock().remove_all(client)
    }

    /// The reason why a session may not subscribe to this, if there is one.
    pub(crate) fn refuses(&self, client: ClientId, uri: &str) -> Option<String> {
        if uri.len() > MAX_URI_BYTES {
            return Some(format!("`uri` is longer than {MAX_URI_BYTES} bytes"));
        }
        let subscriptions = self.subscriptions.lock();
        let is_full = subscriptions.count(client) >= MAX_SUBSCRIPTIONS;
        (is_full && !subscriptions.contains(client, uri))
            .then(|| format!("a session may have {MAX_SUBSCRIPTIONS} subscriptions; end one first"))
    }

    /// Subscribes a session for as long as the child has not refused it. It counts at once: another client may unsubscribe
    /// while the child has not answered yet.
    pub(crate) fn claim(self: &Arc<Self>, client: ClientId, uri: &str) -> SubscriptionClaim {
        SubscriptionClaim {
            is_new: self.subscribe(client, uri),
            hub: Arc::clone(self),
            client,
            uri: uri.into(),
        }
    }

    /// True if it was not subscribed before. One that has left stays away.
    fn subscribe(&self, client: ClientId, uri: &str) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        self.sessions.contains_key(&client) && subscriptions.add(client, uri)
    }

    pub(crate) fn unsubscribe(&self, client: ClientId, uri: &str) -> Unsubscribe {
        match self.subscriptions.lock().remove(client, uri) {
            true => Unsubscribe::AnswerHere,
            false => Unsubscribe::PassOn,
        }
    }

    /// Subscribes or unsubscribes on behalf of the bridge, which needs no answer.
    pub(crate) fn resubscribe(child: &Child, method: &str, uri: &str) {
        let (tx, _) = tokio::sync::oneshot::channel();
        let call = CallParams::of_bridge(Reply::Once(tx), UNASKED_TIMEOUT);
        child.request(method, &json!({ "uri": uri }), call);
    }

    fn session(&self, client: ClientId) -> Option<Arc<Session>> {
        self.sessions.get(&client).and_then(|session| session.upgrade())
    }

    fn all_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions
            .iter()
            .filter_map(|session| session.upgrade())
            .collect()
    }

    /// Subscribers of the updated resource that the update is for.
    fn subscribers_meant(&self, update: &Envelope<'_>) -> Vec<ClientId> {
        let meta = update.params().and_then(|params| params.meta());
        let (Some(uri), Ok(meta)) = (update.uri(), meta) else {
            return Vec::new();
        };
        let is_meant = |client: &ClientId| meta.client.is_none_or(|name| named(name) == Some(*client));
        self.subscriptions.lock().clients(&uri).filter(is_meant).collect()
    }

    fn hear_notification(&self, method: &str, envelope: &Envelope<'_>) {
        match method {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                let message = envelope.on_one_line();
                self.all_sessions()
                    .iter()
                    .for_each(|session| session.push(message.clone()));
            }
            "notifications/resources/updated" => {
                let message = envelope.on_one_line();
                self.subscribers_meant(envelope)
                    .into_iter()
                    .filter_map(|client| self.session(client))
                    .for_each(|session| session.push(message.clone()));
            }
            _ => match self.all_sessions().as_slice() {
                [only] if !self.has_sessionless.load(Ordering::Relaxed) => only.push(envelope.on_one_line()),
                _ => tracing::debug!(
                    method,
                    "a notification of the shared child belongs to no client in particular"
                ),
            },
        }
    }
}

/// A subscription that the child has not granted yet; dropped, it is taken back.
#[derive(Debug)]
pub(crate) struct SubscriptionClaim {
    hub: Arc<Hub>,
    client: ClientId,
    uri: Box<str>,
    /// True if the subscription exists only because of this claim.
    is_new: bool,
}

impl SubscriptionClaim {
    pub(super) fn granted(mut self) {
        self.hub.subscribe(self.client, &self.uri);
        self.is_new = false;
    }
}

impl Drop for SubscriptionClaim {
    fn drop(&mut self) {
        if self.is_new {
            self.hub.unsubscribe(self.client, &self.uri);
        }
    }
}

impl ChildSink for Hub {
    fn operation_owner(&self, client: Option<ClientId>) -> OperationOwner {
        let session = client.and_then(|client| self.session(client));
        session.map_or_else(OperationOwner::default, |session| session.as_owner())
    }

    fn initialized(&self, child: &Child) {
        let wanted: Vec<Box<str>> = self.subscriptions.lock().uris().map(Into::into).collect();
        wanted
            .iter()
            .for_each(|uri| Self::resubscribe(child, "resources/subscribe", uri));
    }

    fn received(&self, child: &Arc<Child>, message: ChildMessage<'_>) {
        match message {
            ChildMessage::For { client, message } => {
                if let Some(session) = self.session(client) {
                    session.push(message);
                }
            }
            ChildMessage::Notification { method, envelope } => self.hear_notification(method, envelope),
            ChildMessage::Request { .. } => refuse_question(child, &message),
        }
    }
}

/// Answers a request of a child whose clients cannot be asked.
pub(super) fn refuse_question(child: &Child, message: &ChildMessage<'_>) {
    let ChildMessage::Request { id, method, .. } = message else {
        return;
    };
    let answer = match *method {
        "ping" => result_message(id.get(), "{}"),
        _ => error_message(
            Some(id.get()),
            -32601,
            "several clients share this server; none can be asked",
        ),
    };
    // A child that is gone waits for no answer.
    let _ = child.send(&String::from_utf8_lossy(&answer));
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
