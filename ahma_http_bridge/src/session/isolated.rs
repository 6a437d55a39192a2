//! What a session with a child of its own has beside its streams: the state, the child, the client's roots.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::watch;

use super::roots::RootsRule;
use super::session::Session;
use super::state::{Effect, EndReason, RootsAnswer, SessionEvent, SessionState};
use crate::backend::{Backend, BackendParams, Restart, own_initialize};
use crate::child::{Audience, Child, ChildFactory, ChildLimits, Heard, Spawn};
use crate::envelope::{error_message, result_message, splice};

/// What is needed to start a child.
#[derive(Debug, Clone)]
pub(crate) struct Nursery {
    pub(crate) factory: Arc<dyn ChildFactory>,
    pub(crate) limits: ChildLimits,
    pub(crate) start_timeout: std::time::Duration,
}

impl Nursery {
    pub(crate) fn backend(
        &self,
        spawn: Spawn,
        restart: Restart,
        initialize: Box<str>,
        audience: Arc<dyn Audience>,
    ) -> Arc<Backend> {
        Backend::new(BackendParams {
            factory: Arc::clone(&self.factory),
            spawn,
            restart,
            limits: self.limits.clone(),
            start_timeout: self.start_timeout,
            initialize,
            audience,
        })
    }
}

#[derive(Debug)]
pub(crate) struct Isolated {
    nursery: Nursery,
    pub(crate) rule: RootsRule,
    state: watch::Sender<SessionState>,
    backend: Mutex<Option<Arc<Backend>>>,
    /// The client's `initialize`, repeated to every child of the session.
    initialize: OnceLock<Box<str>>,
    /// The `result` the client gave for `roots/list`, which is the answer for every child too.
    roots: OnceLock<Box<str>>,
}

impl Isolated {
    pub(crate) fn new(nursery: Nursery, rule: RootsRule) -> Self {
        Self {
            nursery,
            rule,
            state: watch::Sender::new(SessionState::Opened),
            backend: Mutex::new(None),
            initialize: OnceLock::new(),
            roots: OnceLock::new(),
        }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    pub(crate) fn end_reason(&self) -> Option<EndReason> {
        match &*self.state.borrow() {
            SessionState::Ended { reason } => Some(reason.clone()),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> SessionState {
        self.state.borrow().clone()
    }

    pub(crate) fn backend(&self) -> Option<Arc<Backend>> {
        self.lock().clone()
    }

    pub(crate) fn set_initialize(&self, initialize: &str) {
        // The state machine lets only the first through.
        let _ = self.initialize.set(initialize.into());
    }

    pub(crate) fn set_roots(&self, result: &str) {
        let _ = self.roots.set(result.into());
    }

    /// Moves the state on. The child's place is ready before anybody can see the state that needs it, so the
    /// swap from "no child" to "the child" is atomic for whoever waits.
    pub(crate) fn transition(&self, event: SessionEvent, session: &Weak<Session>) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.state.send_modify(|state| {
            let (next, wanted) = state.clone().on(event, &self.rule.default_scope);
            for effect in &wanted {
                if let Effect::StartChild(scope) = effect {
                    *self.lock() = Some(self.prepare(Spawn::Scoped(scope.clone()), session));
                }
            }
            *state = next;
            effects = wanted;
        });
        effects
    }

    /// Judges the client's answer to `roots/list`, once.
    pub(crate) async fn judge(&self, result: Option<&serde_json::value::RawValue>) -> RootsAnswer {
        let roots = self.rule.judge(result).await;
        if !roots.ignored.is_empty() {
            tracing::warn!(ignored = ?roots.ignored, "only the first root is the scope");
        }
        roots.answer
    }

    fn prepare(&self, spawn: Spawn, session: &Weak<Session>) -> Arc<Backend> {
        let initialize = self.initialize.get().cloned().unwrap_or_else(own_initialize);
        let ears = Arc::new(SessionEars(session.clone()));
        self.nursery.backend(spawn, Restart::OnDemand, initialize, ears)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Backend>>> {
        self.backend.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A child of one session talks to that session's client.
#[derive(Debug)]
struct SessionEars(Weak<Session>);

impl Audience for SessionEars {
    fn heard(&self, child: &Arc<Child>, heard: Heard<'_>) {
        let Some(session) = self.0.upgrade() else { return };
        match heard {
            Heard::For { message, .. } => session.push(message),
            Heard::Notification {
                method: "notifications/cancelled",
                envelope,
            } => {
                if let Some(message) = session.asked.take_back(child, envelope) {
                    session.push(message);
                }
            }
            Heard::Notification { envelope, .. } => {
                session.push(splice(envelope.text(), Vec::new()).freeze())
            }
            Heard::Request {
                id, method: "ping", ..
            } => answer(child, &result_message(id.get(), "{}")),
            Heard::Request {
                id,
                method: "roots/list",
                ..
            } => {
                let roots = session.isolated().and_then(|isolated| isolated.roots.get());
                answer(
                    child,
                    &match roots {
                        Some(result) => result_message(id.get(), result),
                        None => error_message(Some(id.get()), -32601, "the client has no roots"),
                    },
                );
            }
            Heard::Request { id, envelope, .. } => {
                session.push(session.asked.ask(child, envelope, id));
            }
        }
    }
}

fn answer(child: &Child, message: &[u8]) {
    // A child that is gone waits for no answer.
    let _ = child.send(&String::from_utf8_lossy(message));
}
