//! Who wants to hear that something changed.
//!
//! Clients of the older era are told through their connection once they have said `initialized`, and about resources
//! they subscribed to; those of the newer era open subscriptions, each with its own filter. Both kinds are kept here,
//! and those that are gone are forgotten when a message to them fails.
//!
//! Where several clients share the server, a subscription hears of its own client's operations only. Clients of the older
//! era share one connection, so what is told there names the client, and the bridge tells that one.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    Peer, RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{SubscriptionSendError, SubscriptionSink},
};

use super::owner;
use crate::operation::Owner;

/// Everyone to be told about changes.
#[derive(Debug, Default)]
pub(super) struct Audience {
    members: Mutex<Members>,
}

#[derive(Debug, Default)]
struct Members {
    /// The connection, once its client said `initialized`. stdio has one; all clients behind it share it.
    peer: Option<Peer<RoleServer>>,
    /// Resources the peer subscribed to.
    uris: HashSet<String>,
    sinks: HashMap<u64, (Owner, SubscriptionSink)>,
    next_sink: u64,
    /// Resources that a task watches, to tell of each change.
    watched: HashSet<String>,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change<'a> {
    ToolList,
    Resource(&'a str),
    /// A resource, because of an operation of this client.
    Operation(&'a Owner, &'a str),
}

impl Change<'_> {
    fn concerns(self, client: &Owner) -> bool {
        match self {
            Self::ToolList | Self::Resource(_) => true,
            Self::Operation(owner, _) => owner == client,
        }
    }
}

impl Audience {
    pub(super) fn add_peer(&self, peer: Peer<RoleServer>) {
        self.lock().peer = Some(peer);
    }

    /// The connection of a client of the older era.
    #[cfg(feature = "client")]
    pub(super) fn peer(&self) -> Option<Peer<RoleServer>> {
        self.lock().peer.clone()
    }

    pub(super) fn subscribe(&self, uri: String) {
        self.lock().uris.insert(uri);
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.lock().uris.remove(uri);
    }

    /// Adds a subscription; give the number back to [`Audience::remove_sink`] when it ends.
    pub(super) fn add_sink(&self, owner: Owner, sink: SubscriptionSink) -> u64 {
        let mut members = self.lock();
        let number = members.next_sink;
        members.next_sink += 1;
        members.sinks.insert(number, (owner, sink));
        number
    }

    pub(super) fn remove_sink(&self, number: u64) {
        self.lock().sinks.remove(&number);
    }

    /// Whether anyone would hear of a change to this resource.
    pub(super) fn wants(&self, uri: &str) -> bool {
        self.lock().want(uri)
    }

    /// Every resource that somebody subscribed to.
    pub(super) fn subscriptions(&self) -> HashSet<String> {
        let members = self.lock();
        let of_sinks = members.subscribed().cloned();
        members.uris.iter().cloned().chain(of_sinks).collect()
    }

    /// Notes that a resource is watched from now on; false if it is already.
    pub(super) fn begin_watch(&self, uri: &str) -> bool {
        self.lock().watched.insert(uri.to_owned())
    }

    /// Whether to go on watching a resource. If not, that is noted, and the next subscription begins anew.
    pub(super) fn goes_on_watching(&self, uri: &str) -> bool {
        let mut members = self.lock();
        let wanted = members.want(uri);
        if !wanted {
            members.watched.remove(uri);
        }
        wanted
    }

    pub(super) fn end_watch(&self, uri: &str) {
        self.lock().watched.remove(uri);
    }

    /// Tells everyone who wants to know.
    pub(super) async fn tell(&self, change: Change<'_>) {
        let (peer, sinks) = {
            let members = self.lock();
            let peer = members.peer.clone().filter(|_| match change {
                Change::ToolList => true,
                Change::Resource(uri) | Change::Operation(_, uri) => members.uris.contains(uri),
            });
            let sinks: Vec<_> = members
                .sinks
                .iter()
                .filter(|(_, (owner, _))| change.concerns(owner))
                .map(|(number, (_, sink))| (*number, sink.clone()))
                .collect();
            (peer, sinks)
        };
        if let Some(peer) = peer {
            let told = match change {
                Change::ToolList => peer.notify_tool_list_changed().await,
                Change::Resource(uri) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri))
                        .await
                }
                Change::Operation(owner, uri) => {
                    let mut update = ResourceUpdatedNotificationParam::new(uri);
                    update.meta = owner::meant_for(owner);
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

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Members {
    fn want(&self, uri: &str) -> bool {
        self.uris.contains(uri) || self.subscribed().any(|known| known == uri)
    }

    /// What subscriptions of the newer era ask for.
    fn subscribed(&self) -> impl Iterator<Item = &String> {
        let accepted = self.sinks.values().map(|(_, sink)| sink.accepted());
        accepted.flat_map(|filter| filter.resource_subscriptions.iter().flatten())
    }
}
