//! Subscribers to changes of tools and resources.
//!
//! Clients of the legacy era are notified on their connection after `initialized`, and of resources that they subscribed
//! to; those of the modern era open subscriptions, each with its own filter. Both kinds are kept here, and removed when a
//! message to them fails.
//!
//! If several clients share the server, a subscription gets its own client's operations only. Clients of the legacy
//! era share one connection, so a message there names the client, and the bridge passes it on to that one.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use rmcp::{
    Peer, RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{SubscriptionSendError, SubscriptionSink},
};
use tokio::sync::Notify;

use super::client;
use crate::operation::ClientId;

/// All subscribers.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    table: Mutex<SubscriptionTable>,
    /// Notified when a client has sent `initialized`.
    came: Notify,
}

#[derive(Debug, Default)]
struct SubscriptionTable {
    /// The connection, once its client said `initialized`. stdio has one, which all clients of a bridge share.
    peer: Option<Peer<RoleServer>>,
    /// Resources the peer subscribed to.
    uris: HashSet<String>,
    sinks: HashMap<u64, (ClientId, SubscriptionSink)>,
    next_sink: u64,
    /// Resources whose operation is being watched.
    watched: HashSet<String>,
}

/// A change to notify subscribers of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change<'a> {
    ToolList,
    Resource(&'a str),
    /// A resource, because of an operation of this client.
    Operation(&'a ClientId, &'a str),
}

impl Change<'_> {
    /// The only client that the change concerns; none if it concerns all.
    fn client(&self) -> Option<&ClientId> {
        match self {
            Self::ToolList | Self::Resource(_) => None,
            Self::Operation(client, _) => Some(client),
        }
    }
}

impl Subscriptions {
    pub(super) fn add_peer(&self, peer: Peer<RoleServer>) {
        self.table.lock().peer = Some(peer);
        self.came.notify_one();
    }

    /// Waits for `initialized` of a client of the legacy era, unless one came since the last call.
    pub(super) async fn peer_came(&self) {
        self.came.notified().await;
    }

    /// The connection of clients of the legacy era.
    pub(super) fn peer(&self) -> Option<Peer<RoleServer>> {
        self.table.lock().peer.clone()
    }

    pub(super) fn subscribe(&self, uri: String) {
        self.table.lock().uris.insert(uri);
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.table.lock().uris.remove(uri);
    }

    /// Adds a subscription; give the number back to [`Subscriptions::remove_sink`] when it ends.
    pub(super) fn add_sink(&self, client: ClientId, sink: SubscriptionSink) -> u64 {
        let mut table = self.table.lock();
        let number = table.next_sink;
        table.next_sink += 1;
        table.sinks.insert(number, (client, sink));
        number
    }

    pub(super) fn remove_sink(&self, number: u64) {
        self.table.lock().sinks.remove(&number);
    }

    /// True if there is a subscriber to this resource.
    pub(super) fn wants(&self, uri: &str) -> bool {
        self.table.lock().want(uri)
    }

    /// Every resource that has a subscriber.
    pub(super) fn uris(&self) -> HashSet<String> {
        let table = self.table.lock();
        let of_sinks = table.subscribed().cloned();
        table.uris.iter().cloned().chain(of_sinks).collect()
    }

    /// Notes that a resource is watched from now on; false if it is already.
    pub(super) fn begin_watch(&self, uri: &str) -> bool {
        self.table.lock().watched.insert(uri.to_owned())
    }

    /// True if a resource still has a subscriber. If not, the next subscription begins a new watch.
    pub(super) fn goes_on_watching(&self, uri: &str) -> bool {
        let mut table = self.table.lock();
        let wanted = table.want(uri);
        if !wanted {
            table.watched.remove(uri);
        }
        wanted
    }

    pub(super) fn end_watch(&self, uri: &str) {
        self.table.lock().watched.remove(uri);
    }

    /// Sends a change to its subscribers.
    pub(super) async fn notify(&self, change: Change<'_>) {
        let (peer, sinks) = {
            let table = self.table.lock();
            let peer = table.peer.clone().filter(|_| match change {
                Change::ToolList => true,
                Change::Resource(uri) | Change::Operation(_, uri) => table.uris.contains(uri),
            });
            let sinks: Vec<_> = table
                .sinks
                .iter()
                .filter(|(_, (client, _))| change.client().is_none_or(|concerned| concerned == client))
                .map(|(number, (_, sink))| (*number, sink.clone()))
                .collect();
            (peer, sinks)
        };
        if let Some(peer) = peer {
            let told = match change {
                Change::ToolList => peer.notify_tool_list_changed().await,
                Change::Resource(uri) | Change::Operation(_, uri) => {
                    let mut update = ResourceUpdatedNotificationParam::new(uri);
                    update.meta = change.client().and_then(client::meant_for);
                    peer.notify_resource_updated(update).await
                }
            };
            if let Err(error) = told {
                tracing::debug!(%error, "a client could not be told of a change");
            }
        }
        for (number, sink) in sinks {
            let told = match change {
                Change::ToolList => sink.notify_tool_list_changed().await,
                Change::Resource(uri) | Change::Operation(_, uri) => sink.notify_resource_updated(uri).await,
            };
            match told {
                Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                Err(error) => {
                    tracing::debug!(%error, "a subscription has ended");
                    self.remove_sink(number);
                }
            }
        }
    }
}

impl SubscriptionTable {
    fn want(&self, uri: &str) -> bool {
        self.uris.contains(uri) || self.subscribed().any(|known| known == uri)
    }

    /// Resources that subscriptions of the modern era ask for.
    fn subscribed(&self) -> impl Iterator<Item = &String> {
        let accepted = self.sinks.values().map(|(_, sink)| sink.accepted());
        accepted.flat_map(|filter| filter.resource_subscriptions.iter().flatten())
    }
}
