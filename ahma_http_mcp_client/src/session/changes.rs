//! The changes that a modern server announces, on a subscription that is renewed until the connection ends.
//!
//! A task of its own does the work: a server that does not answer must not keep its actor from noticing that the
//! connection is gone, or from shutting down.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{ProtocolVersion, ServerNotification, SubscriptionFilter},
    service::{Peer, ServiceError, Subscription},
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// Delay after the end of a subscription, for servers that end every one at once.
const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(1);
/// Delay after a refusal: the server may be one that is starting.
const REFUSED_DELAY: Duration = Duration::from_secs(60);
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Changes that wait for the reader; a slow one loses nothing, since the server's own stream waits.
const UNREAD: usize = 16;

/// The announced changes; the subscription ends with the value.
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
        Self::start(peer, offered(peer, wanted), None)
    }

    /// Asks a modern server for changes and returns when it has agreed.
    pub(crate) async fn subscribe(
        peer: &Peer<RoleClient>,
        wanted: SubscriptionFilter,
    ) -> Result<Self, ServiceError> {
        let subscription = peer.listen(wanted.clone()).await?;
        Ok(Self::start(peer, Some(wanted), Some(subscription)))
    }

    fn start(
        peer: &Peer<RoleClient>,
        filter: Option<SubscriptionFilter>,
        first: Option<Subscription>,
    ) -> Self {
        let (sender, received) = mpsc::channel(UNREAD);
        let peer = peer.clone();
        let carrier = async move {
            if let Some(filter) = filter {
                carry(&peer, &filter, first, &sender).await;
            }
        };
        Self {
            received,
            _carrier: AbortOnDropHandle::new(tokio::spawn(carrier)),
        }
    }

    /// The next change. Never resolves where a server announces nothing, or does so unasked.
    pub(crate) async fn next(&mut self) -> Change {
        match self.received.recv().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

/// The part of it that a modern server offers; legacy ones announce their changes unasked.
fn offered(peer: &Peer<RoleClient>, wanted: SubscriptionFilter) -> Option<SubscriptionFilter> {
    let info = peer.peer_info()?;
    if info.protocol_version < ProtocolVersion::NO_INITIALIZE {
        return None;
    }
    let offered = wanted.supported_by(&info.capabilities);
    (offered != SubscriptionFilter::default()).then_some(offered)
}

/// Ends with the connection, or with the receiver.
async fn carry(
    peer: &Peer<RoleClient>,
    filter: &SubscriptionFilter,
    mut first: Option<Subscription>,
    sender: &mpsc::Sender<Change>,
) {
    while !peer.is_transport_closed() {
        let mut subscription = match first.take() {
            Some(subscription) => subscription,
            None => match tokio::time::timeout(SUBSCRIBE_TIMEOUT, peer.listen(filter.clone())).await {
                Ok(Ok(subscription)) => subscription,
                refused => {
                    tracing::debug!(?refused, "no subscription to changes");
                    tokio::time::sleep(REFUSED_DELAY).await;
                    continue;
                }
            },
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
