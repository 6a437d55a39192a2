//! Parts of a session with a child of its own: the child and the client's roots.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use ahma_common::envelope::{error_message, result_message};
use parking_lot::Mutex;

use super::roots::RootsRule;
use super::session::Session;
use crate::child::{
    Backend, Child, ChildMessage, ChildSink, ChildSpawner, ClientId, Restart, Spawn, own_initialize,
};
use crate::operations::{BackendOwner, OperationOwner};

#[derive(Debug)]
pub(crate) struct Isolated {
    spawner: ChildSpawner,
    pub(crate) rule: RootsRule,
    backend: Mutex<Option<Arc<Backend>>>,
    /// The client's `initialize`, repeated to every child of the session.
    initialize: OnceLock<Box<str>>,
    /// The `result` the client gave for `roots/list`, which is the answer for every child too.
    roots: OnceLock<Box<str>>,
}

impl Isolated {
    pub(crate) fn new(spawner: ChildSpawner, rule: RootsRule) -> Self {
        Self {
            spawner,
            rule,
            backend: Mutex::new(None),
            initialize: OnceLock::new(),
            roots: OnceLock::new(),
        }
    }

    pub(crate) fn backend(&self) -> Option<Arc<Backend>> {
        self.backend.lock().clone()
    }

    pub(crate) fn set_initialize(&self, initialize: &str) {
        // The state machine lets only the first through.
        let _ = self.initialize.set(initialize.into());
    }

    pub(crate) fn set_roots(&self, result: &str) {
        let _ = self.roots.set(result.into());
    }

    /// Puts the backend of the session in place, confined to this directory.
    pub(crate) fn prepare(&self, scope: PathBuf, session: &Weak<Session>) {
        let initialize = self.initialize.get().cloned().unwrap_or_else(own_initialize);
        let sink = Arc::new(SessionSink(session.clone()));
        let spawn = Spawn::Scoped(scope);
        let backend = self.spawner.backend(spawn, Restart::OnDemand, initialize, sink);
        *self.backend.lock() = Some(backend);
    }
}

/// Passes the messages of a session's child on to its client.
#[derive(Debug)]
struct SessionSink(Weak<Session>);

impl ChildSink for SessionSink {
    fn operation_owner(&self, _client: Option<ClientId>) -> OperationOwner {
        let session = self.0.upgrade();
        session.map_or_else(OperationOwner::default, |session| session.as_owner())
    }

    fn owner(&self) -> BackendOwner {
        let session = self.0.upgrade();
        session.map_or_else(BackendOwner::default, |session| BackendOwner {
            principal: Some(Arc::clone(&session.principal().name)),
            session: Some(session.id().into()),
        })
    }

    fn received(&self, child: &Arc<Child>, message: ChildMessage<'_>) {
        let Some(session) = self.0.upgrade() else { return };
        match message {
            ChildMessage::For { message, .. } => session.push(message),
            ChildMessage::Notification {
                method: "notifications/cancelled",
                envelope,
            } => {
                if let Some(message) = session.asked.take_back(child, envelope) {
                    session.push(message);
                }
            }
            ChildMessage::Notification { envelope, .. } => session.push(envelope.on_one_line()),
            ChildMessage::Request {
                id, method: "ping", ..
            } => answer(child, &result_message(id.get(), "{}")),
            ChildMessage::Request {
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
            ChildMessage::Request { id, envelope, .. } => {
                session.push(session.asked.ask(child, envelope, id));
            }
        }
    }
}

fn answer(child: &Child, message: &[u8]) {
    // A child that is gone waits for no answer.
    let _ = child.send(&String::from_utf8_lossy(message));
}
