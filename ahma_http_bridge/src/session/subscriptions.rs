//! Subscriptions of the clients of a shared child.
//!
//! Everything but a client's leaving is done without looking at the others' subscriptions: all clients wait for it.

use std::collections::{HashMap, HashSet};

use crate::child::ClientId;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// No set is empty.
    by_uri: HashMap<Box<str>, HashSet<ClientId>>,
    /// Number of those sets that each client is in; never zero.
    counts: HashMap<ClientId, usize>,
}

impl Subscriptions {
    pub(super) fn count(&self, client: ClientId) -> usize {
        self.counts.get(&client).copied().unwrap_or_default()
    }

    pub(super) fn contains(&self, client: ClientId, uri: &str) -> bool {
        self.by_uri
            .get(uri)
            .is_some_and(|clients| clients.contains(&client))
    }

    /// True if it was not there before.
    pub(super) fn add(&mut self, client: ClientId, uri: &str) -> bool {
        let is_new = self.by_uri.entry(uri.into()).or_default().insert(client);
        if is_new {
            *self.counts.entry(client).or_default() += 1;
        }
        is_new
    }

    /// True if another client is still subscribed.
    pub(super) fn remove(&mut self, client: ClientId, uri: &str) -> bool {
        let Some(clients) = self.by_uri.get_mut(uri) else {
            return false;
        };
        let was_there = clients.remove(&client);
        let is_wanted = !clients.is_empty();
        if !is_wanted {
            self.by_uri.remove(uri);
        }
        if was_there && let Some(count) = self.counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&client);
            }
        }
        is_wanted
    }

    /// Removes all of a client's. Gives back the resources without any other subscriber.
    pub(super) fn remove_all(&mut self, client: ClientId) -> Vec<Box<str>> {
        if self.counts.remove(&client).is_none() {
            return Vec::new();
        }
        self.by_uri
            .extract_if(|_, clients| clients.remove(&client) && clients.is_empty())
            .map(|(uri, _)| uri)
            .collect()
    }

    pub(super) fn clients(&self, uri: &str) -> impl Iterator<Item = ClientId> {
        self.by_uri.get(uri).into_iter().flatten().copied()
    }

    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.by_uri.keys().map(|uri| &**uri)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_uri.is_empty() && self.counts.is_empty()
    }
}
