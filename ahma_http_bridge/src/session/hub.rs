//! Who hears a child that serves many clients.
//!
//! The rule: a message goes to the client it belongs to; what concerns all goes to all; what belongs to
//! somebody we cannot name goes to nobody, unless there is only one client it could be for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dashmap::DashMap;

use super::subscriptions::Subscriptions;
use crate::child::{Audience, BRIDGE, CallParams, Child, Heard, OwnerId, Provisional, Reply, named};
use crate::envelope::{Envelope, error_message, result_message, splice};
use crate::session::Session;

/// How long a request that nobody waits for may stay open.
const UNASKED_PATIENCE: Duration = Duration::from_secs(30);
/// What is kept of a session's subscriptions: longer addresses are none, and more of them nobody looks at.
const MAX_URI_BYTES: usize = 8 << 10;
const MAX_SUBSCRIPTIONS: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Hub {
    sessions: DashMap<OwnerId, Weak<Session>>,
    subscriptions: Mutex<Subscriptions>,
    /// Whether clients without a session were served, too: then a message may be theirs.
    has_strangers: AtomicBool,
}

/// What the bridge has to do about a client's `resources/unsubscribe`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unsubscribe {
    /// Somebody else still wants the updates; the child must not hear of it.
    AnswerHere,
    PassOn,
}

impl Hub {
    pub(crate) fn join(&self, owner: OwnerId, session: Weak<Session>) {
        self.sessions.insert(owner, session);
    }

    pub(crate) fn note_stranger(&self) {
        self.has_strangers.store(true, Ordering::Relaxed);
    }

    /// Forgets a session. Gives back the resources nobody is subscribed to any more.
    pub(crate) fn leave(&self, owner: OwnerId) -> Vec<Box<str>> {
        self.sessions.remove(&owner);
        self.subscriptions().remove_all(owner)
    }

    /// Why a session may not subscribe to this, if it may not.
    pub(crate) fn refuses(&self, owner: OwnerId, uri: &str) -> Option<String> {
        if uri.len() > MAX_URI_BYTES {
            return Some(format!("`uri` is longer than {MAX_URI_BYTES} bytes"));
        }
        let subscriptions = self.subscriptions();
        let is_full = subscriptions.count(owner) >= MAX_SUBSCRIPTIONS;
        (is_full && !subscriptions.contains(owner, uri))
            .then(|| format!("a session may have {MAX_SUBSCRIPTIONS} subscriptions; end one first"))
    }

    /// Subscribes a session for as long as the child has not refused it. It counts at once: somebody else may unsubscribe
    /// while the child has not answered yet.
    pub(crate) fn claim(self: &Arc<Self>, owner: OwnerId, uri: &str) -> Claim {
        Claim {
            is_new: self.subscribe(owner, uri),
            hub: Arc::clone(self),
            owner,
            uri: uri.into(),
        }
    }

    /// Whether it was not subscribed before. One that has left stays away.
    fn subscribe(&self, owner: OwnerId, uri: &str) -> bool {
        let mut subscriptions = self.subscriptions();
        self.sessions.contains_key(&owner) && subscriptions.add(owner, uri)
    }

    pub(crate) fn unsubscribe(&self, owner: OwnerId, uri: &str) -> Unsubscribe {
        match self.subscriptions().remove(owner, uri) {
            true => Unsubscribe::AnswerHere,
            false => Unsubscribe::PassOn,
        }
    }

    /// Tells a child about a resource on behalf of the bridge, whose answer nobody needs.
    pub(crate) fn resubscribe(child: &Child, method: &str, uri: &str) {
        let uri = serde_json::Value::from(uri);
        let text = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":{{"uri":{uri}}}}}"#);
        let (tx, _) = tokio::sync::oneshot::channel();
        let params = CallParams {
            reply: Reply::Once(tx),
            owner: BRIDGE,
            patience: Some(UNASKED_PATIENCE),
            permit: None,
            activity: None,
            record: None,
            provisional: None,
        };
        if let Ok(envelope) = Envelope::parse(text.as_bytes())
            && let Ok(request) = envelope.request()
        {
            let _ = child.call(request, params);
        }
    }

    fn subscriptions(&self) -> MutexGuard<'_, Subscriptions> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, owner: OwnerId) -> Option<Arc<Session>> {
        self.sessions.get(&owner).and_then(|session| session.upgrade())
    }

    fn everybody(&self) -> Vec<Arc<Session>> {
        self.sessions
            .iter()
            .filter_map(|session| session.upgrade())
            .collect()
    }

    /// Who subscribed to the resource of this update, as far as it is for them.
    fn subscribers_meant(&self, update: &Envelope<'_>) -> Vec<OwnerId> {
        let meta = update.params().and_then(|params| params.meta());
        let (Some(uri), Ok(meta)) = (update.uri(), meta) else {
            return Vec::new();
        };
        let is_meant = |owner: &OwnerId| meta.client.is_none_or(|client| named(client) == Some(*owner));
        self.subscriptions().owners(&uri).filter(is_meant).collect()
    }

    fn hear_notification(&self, method: &str, envelope: &Envelope<'_>) {
        let message = || splice(envelope.text(), Vec::new()).freeze();
        match method {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                let message = message();
                self.everybody()
                    .iter()
                    .for_each(|session| session.push(message.clone()));
            }
            "notifications/resources/updated" => {
                let message = message();
                self.subscribers_meant(envelope)
                    .into_iter()
                    .filter_map(|owner| self.session(owner))
                    .for_each(|session| session.push(message.clone()));
            }
            _ => match self.everybody().as_slice() {
                [only] if !self.has_strangers.load(Ordering::Relaxed) => only.push(message()),
                _ => tracing::debug!(
                    method,
                    "a notification of the shared child belongs to nobody in particular"
                ),
            },
        }
    }
}

/// A subscription that the child has not granted yet; dropped, it is taken back.
#[derive(Debug)]
pub(crate) struct Claim {
    hub: Arc<Hub>,
    owner: OwnerId,
    uri: Box<str>,
    /// Whether there would be none without this one.
    is_new: bool,
}

impl Provisional for Claim {
    fn granted(&mut self) {
        self.hub.subscribe(self.owner, &self.uri);
        self.is_new = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_new {
            self.hub.unsubscribe(self.owner, &self.uri);
        }
    }
}

impl Audience for Hub {
    fn greeted(&self, child: &Child) {
        let wanted: Vec<Box<str>> = self.subscriptions().uris().map(Into::into).collect();
        wanted
            .iter()
            .for_each(|uri| Self::resubscribe(child, "resources/subscribe", uri));
    }

    fn heard(&self, child: &Arc<Child>, heard: Heard<'_>) {
        match heard {
            Heard::For { owner, message } => {
                if let Some(session) = self.session(owner) {
                    session.push(message);
                }
            }
            Heard::Notification { method, envelope } => self.hear_notification(method, envelope),
            Heard::Request { id, method, .. } => {
                let answer = match method {
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
        }
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod hub_tests;
