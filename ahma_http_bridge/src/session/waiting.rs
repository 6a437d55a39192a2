//! Requests that wait for their session's child, so that their client can take them back.
//!
//! A cancellation marks the waiting request before it looks among those the child has; passing a request on
//! includes a look at the mark after the child has it. So one of the two always sees the other.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct WaitingRequests {
    /// By the id their client gave them, as it was written. A client that uses an id twice cancels both.
    places: Mutex<HashMap<Box<str>, CancellationToken>>,
    /// Notified whenever a place is left.
    left: Notify,
}

impl WaitingRequests {
    pub(crate) fn enter(self: &Arc<Self>, id: &str) -> WaitingRequest {
        let cancelled = self.places.lock().entry(id.into()).or_default().clone();
        WaitingRequest {
            waiting: Arc::clone(self),
            id: id.into(),
            cancelled,
        }
    }

    pub(crate) fn cancel(&self, id: &str) {
        if let Some(cancelled) = self.places.lock().get(id) {
            cancelled.cancel();
        }
    }

    /// For a session that is over.
    pub(crate) fn cancel_all(&self) {
        self.places.lock().values().for_each(CancellationToken::cancel);
    }

    /// Returns when no request waits any more.
    pub(crate) async fn all_left(&self) {
        loop {
            let left = self.left.notified();
            if self.places.lock().is_empty() {
                return;
            }
            left.await;
        }
    }
}

/// A waiting request's place; dropped when it waits no longer.
#[derive(Debug)]
pub(crate) struct WaitingRequest {
    waiting: Arc<WaitingRequests>,
    id: Box<str>,
    cancelled: CancellationToken,
}

impl WaitingRequest {
    /// The output of `future`, or `None` if the request is cancelled first.
    pub(crate) async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.cancelled.run_until_cancelled(future).await
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.waiting.places.lock().remove(&self.id);
        self.waiting.left.notify_waiters();
    }
}
