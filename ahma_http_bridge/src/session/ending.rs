//! The end of a session, and of what is its own.

use std::time::Duration;

use serde_json::json;

use super::hub::Hub;
use super::session::{Service, Session};
use super::state::{EndReason, SessionEvent};
use crate::child::CallFailure;

/// Time for waiting requests to learn that there will be no child. They are woken already; on a busy
/// machine it is milliseconds.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for the operations of a session to end and be reported: a command has five seconds for its last words. The end of
/// its child ends them in any case.
const OPERATIONS_END_TIMEOUT: Duration = Duration::from_secs(8);

impl Session {
    /// Ends the session. When this returns, a child of its own is gone with all commands; a shared one has been told
    /// that the client is gone.
    pub(crate) async fn end(&self, reason: EndReason) {
        let effects = self.transition(SessionEvent::Closed(reason));
        self.carry_out(effects).await;
    }

    /// Records why the session ended, which happens once.
    pub(super) fn record_end(&self) {
        let outcome = self.end_reason().map(|reason| reason.to_string());
        let principal = &*self.principal().name;
        let fields = json!({ "principal": principal, "session": self.id(), "outcome": outcome });
        self.params.audit.record("session_ended", fields);
    }

    pub(super) async fn stop(&self) {
        // A child that is just being started is not there to be told, and must not hear of them later.
        self.waiting.cancel_all();
        match &self.params.service {
            Service::Shared { backend, hub, .. } => {
                let orphaned = hub.leave(self.serial());
                if let Some(child) = backend.running() {
                    child.cancel_client(self.serial(), &self.why_ended());
                    orphaned
                        .iter()
                        .for_each(|uri| Hub::resubscribe(&child, "resources/unsubscribe", uri));
                }
            }
            Service::Isolated(isolated) => {
                if let Some(backend) = isolated.backend() {
                    // Its operations end because of the session, not because a server process ends.
                    if let Some(child) = backend.running() {
                        child.cancel_client(self.serial(), &self.why_ended());
                        let ended = child.operations().all_ended();
                        let _ = tokio::time::timeout(OPERATIONS_END_TIMEOUT, ended).await;
                    }
                    backend.stop(CallFailure::SessionEnded).await;
                }
            }
        }
        // No child will come for waiting requests. They are answered before their streams end.
        let _ = tokio::time::timeout(LAST_OUTPUT_TIMEOUT, self.waiting.all_left()).await;
        self.streams.close();
    }

    fn why_ended(&self) -> String {
        let reason = self.end_reason().map(|reason| reason.to_string());
        reason.unwrap_or_else(|| "the session ended".to_owned())
    }
}
