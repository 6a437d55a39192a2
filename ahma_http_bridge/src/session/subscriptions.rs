//! Which clients of a shared child are subscribed to which resource.
//!
//! Everything but a client's leaving is done without looking at the others' subscriptions: all clients wait for it.

use std::collections::{HashMap, HashSet};

use crate::child::OwnerId;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// No set is empty.
    by_uri: HashMap<Box<str>, HashSet<OwnerId>>,
    /// How many of those sets each owner is in; no number is zero.
    counts: HashMap<OwnerId, usize>,
}

impl Subscriptions {
    pub(super) fn count(&self, owner: OwnerId) -> usize {
        self.counts.get(&owner).copied().unwrap_or_default()
    }

    pub(super) fn contains(&self, owner: OwnerId, uri: &str) -> bool {
        self.by_uri.get(uri).is_some_and(|owners| owners.contains(&owner))
    }

    /// Whether it was not there before.
    pub(super) fn add(&mut self, owner: OwnerId, uri: &str) -> bool {
        let is_new = self.by_uri.entry(uri.into()).or_default().insert(owner);
        if is_new {
            *self.counts.entry(owner).or_default() += 1;
        }
        is_new
    }

    /// Whether somebody else is still subscribed.
    pub(super) fn remove(&mut self, owner: OwnerId, uri: &str) -> bool {
        let Some(owners) = self.by_uri.get_mut(uri) else {
            return false;
        };
        let was_there = owners.remove(&owner);
        let is_wanted = !owners.is_empty();
        if !is_wanted {
            self.by_uri.remove(uri);
        }
        if was_there && let Some(count) = self.counts.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&owner);
            }
        }
        is_wanted
    }

    /// Removes all of an owner's. Gives back the resources nobody is subscribed to any more.
    pub(super) fn remove_all(&mut self, owner: OwnerId) -> Vec<Box<str>> {
        if self.counts.remove(&owner).is_none() {
            return Vec::new();
        }
        self.by_uri
            .extract_if(|_, owners| owners.remove(&owner) && owners.is_empty())
            .map(|(uri, _)| uri)
            .collect()
    }

    pub(super) fn owners(&self, uri: &str) -> impl Iterator<Item = OwnerId> {
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
