//! Requests that were read and not yet answered.

use std::collections::HashSet;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::sync::Notify;

/// Knows which ids are taken, and when the last of them is free.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    ids: Mutex<HashSet<RequestId>>,
    idle: Notify,
}

impl OpenRequests {
    /// False if a request with this id is still open.
    pub(super) fn open(&self, id: &RequestId) -> bool {
        self.ids.lock().insert(id.clone())
    }

    pub(super) fn close(&self, id: &RequestId) {
        let mut ids = self.ids.lock();
        ids.remove(id);
        if ids.is_empty() {
            self.idle.notify_waiters();
        }
    }

    /// Returns when every request is answered.
    pub(super) async fn all_closed(&self) {
        loop {
            let notified = self.idle.notified();
            if self.ids.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }
}
