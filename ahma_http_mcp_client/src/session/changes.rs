//! The changes that a server of the modern era announces, on a subscription that is renewed as long as it takes.
//!
//! The work is done in a task of its own: a server that does not answer must not keep anybody from noticing that the
//! connection is gone, or that we are to end.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::Peer;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// A server that ends every subscription at once is not asked again faster than this.
const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(1);
/// One that gives none is asked now and then: it may be one that is starting.
const REFUSED_DELAY: Duration = Duration::from_secs(60);
const SUBSCRIBE_PATIENCE: Duration = Duration::from_secs(10);
/// A reader that is slow loses nothing: the server's own stream waits.
const UNREAD: usize = 16;

/// What the server says; it ends with the value.
#[derive(Debug)]
pub(crate) struct Changes {
    received: mpsc::Receiver<Change>,
    _carrier: AbortOnDropHandle<()>,
}

#[derive(Debug)]
pub(crate) enum Change {
    /// From now on changes are heard; earlier ones were not.
    Subscribed,
    Announced(Box<ServerNotification>),
    /// Nothing is heard until the next `Subscribed`.
    Ended,
}

impl Changes {
    /// Asks for what of `wanted` the server offers. Must be called inside a Tokio runtime.
    pub(crate) fn of(peer: &Peer<RoleClient>, wanted: SubscriptionFilter) -> Self {
        let (sender, received) = mpsc::channel(UNREAD);
        let peer = peer.clone();
        let carrier = async move {
            if let Some(filter) = offered(&peer, wanted) {
                carry(&peer, &filter, &sender).await;
            }
        };
        Self {
            received,
            _carrier: AbortOnDropHandle::new(tokio::spawn(carrier)),
        }
    }

    /// The next news. Waits for ever where a server announces nothing, or does so unasked.
    pub(crate) async fn next(&mut self) -> Change {
        match self.received.recv().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

/// What a modern server offers of it; legacy ones announce their changes unasked.
fn offered(peer: &Peer<RoleClient>, wanted: SubscriptionFilter) -> Option<SubscriptionFilter> {
    let info = peer.peer_info()?;
    if info.protocol_version < ProtocolVersion::NO_INITIALIZE {
        return None;
    }
    let offered = wanted.supported_by(&info.capabilities);
    (offered != SubscriptionFilter::default()).then_some(offered)
}

/// Ends with the connection, or when nobody listens any more.
async fn carry(peer: &Peer<RoleClient>, filter: &SubscriptionFilter, sender: &mpsc::Sender<Change>) {
    while !peer.is_transport_closed() {
        let subscribing = tokio::time::timeout(SUBSCRIBE_PATIENCE, peer.listen(filter.clone()));
        let mut subscription = match subscribing.await {
            Ok(Ok(subscription)) => subscription,
            refused => {
                tracing::debug!(?refused, "no subscription to changes");
                tokio::time::sleep(REFUSED_DELAY).await;
                continue;
            }
        };
        let mut change = Change::Subscribed;
        while sender.send(change).await.is_ok() {
            change = match subscription.next().await {
                Ok(Some(notification)) => Change::Announced(Box::new(notification)),
                Ok(None) | Err(_) => break,
            };
        }
        if sender.send(Change::Ended).await.is_err() {
            return;
        }
        tokio::time::sleep(RESUBSCRIBE_DELAY).await;
    }
}
