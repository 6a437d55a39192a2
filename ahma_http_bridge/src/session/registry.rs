//! All sessions: how many there may be, who may find which, and when one is forgotten.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use uuid::Uuid;

use super::session::{Session, SessionParams};
use super::state::EndReason;
use crate::auth::Principal;
use crate::child::OwnerId;

/// Sessions that ended with a refusal are remembered to say so; this many at most.
const MAX_REFUSED: usize = 256;

#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: DashMap<Box<str>, Arc<Session>>,
    next_serial: AtomicU64,
    /// The numbers of principals that were served without a session.
    without_session: DashMap<Arc<str>, OwnerId>,
    max: usize,
    /// Held while counting and inserting, so that the cap is exact and nothing opens behind the back of who ends all.
    door: Mutex<Door>,
}

#[derive(Debug)]
enum Door {
    Open {
        /// Clients that have a child without a session, which counts as one.
        guests: HashSet<Arc<str>>,
    },
    /// Nothing may be opened that nobody would end.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the server has as many sessions as it may have ({0}); try again later")]
    Full(usize),
    #[error("this client has as many sessions as it may have ({0}); end one first")]
    PrincipalFull(usize),
    #[error("this client has as many open requests as it may have ({0}); wait for one to be answered")]
    TooManyCalls(usize),
    #[error("{0}")]
    Pressure(&'static str),
    #[error("the server is shutting down")]
    Closed,
}

impl Sessions {
    pub(crate) fn new(max: usize) -> Self {
        // 0 is the bridge's.
        Self {
            by_id: DashMap::new(),
            next_serial: AtomicU64::new(1),
            without_session: DashMap::new(),
            max,
            door: Mutex::new(Door::Open {
                guests: HashSet::new(),
            }),
        }
    }

    pub(crate) fn open(&self, params: SessionParams) -> Result<Arc<Session>, OpenError> {
        let mut door = self.door();
        self.refuse_if_full(door.guests()?, &params.principal)?;
        let mut refused: Vec<_> = (self.by_id.iter())
            .filter(|session| session.end_reason().is_some())
            .map(|session| (session.serial(), session.key().clone()))
            .collect();
        refused.sort();
        for (_, id) in refused.iter().rev().skip(MAX_REFUSED) {
            self.by_id.remove(id);
        }
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        let session = Session::new(Uuid::new_v4().to_string(), serial, params);
        self.by_id.insert(session.id().into(), Arc::clone(&session));
        Ok(session)
    }

    /// The number of a principal whose requests stand alone.
    pub(crate) fn owner_without_session(&self, principal: &Arc<str>) -> OwnerId {
        if let Some(known) = self.without_session.get(principal) {
            return *known;
        }
        *self
            .without_session
            .entry(Arc::clone(principal))
            .or_insert_with(|| self.next_serial.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts the child of a client without a session.
    pub(crate) fn admit_guest(&self, principal: &Principal) -> Result<(), OpenError> {
        let mut door = self.door();
        let guests = door.guests()?;
        self.refuse_if_full(guests, principal)?;
        guests.insert(Arc::clone(&principal.name));
        Ok(())
    }

    /// Refuses a guest that is counted already another child, once everything ends.
    pub(crate) fn readmit_guest(&self) -> Result<(), OpenError> {
        self.door().guests().map(drop)
    }

    pub(crate) fn dismiss_guest(&self, name: &Arc<str>) {
        if let Ok(guests) = self.door().guests() {
            guests.remove(name);
        }
    }

    fn refuse_if_full(&self, guests: &HashSet<Arc<str>>, principal: &Principal) -> Result<(), OpenError> {
        let (mut live, mut of_principal) = (guests.len(), usize::from(guests.contains(&principal.name)));
        for session in self.by_id.iter().filter(|session| session.end_reason().is_none()) {
            live += 1;
            of_principal += usize::from(session.principal().name == principal.name);
        }
        if live >= self.max {
            return Err(OpenError::Full(self.max));
        }
        match principal.max_sessions.filter(|cap| of_principal >= *cap) {
            Some(cap) => Err(OpenError::PrincipalFull(cap)),
            None => Ok(()),
        }
    }

    /// The session of this client with this id. Somebody else's is not found.
    pub(crate) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.by_id.get(id)?;
        (session.principal().name == principal.name).then(|| Arc::clone(&session))
    }

    /// Takes a session out, so that nobody finds it from now on.
    pub(crate) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.by_id.remove(id).map(|(_, session)| session)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.by_id.iter().map(|session| Arc::clone(&session)).collect()
    }

    pub(crate) fn live(&self) -> usize {
        self.by_id
            .iter()
            .filter(|session| session.end_reason().is_none())
            .count()
    }

    /// Takes out the sessions nobody has used for so long, and those that ended and were not asked for since.
    pub(crate) fn take_idle(&self, idle: Duration) -> Vec<Arc<Session>> {
        let stale: Vec<Box<str>> = self
            .by_id
            .iter()
            .filter(|session| {
                let gone = session.end_reason().is_some_and(|reason| !reason.is_refusal());
                gone || session.idle_for() >= idle
            })
            .map(|session| session.key().clone())
            .collect();
        stale.iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Takes out every session, for the end of the bridge. From now on none opens, nor may a guest come.
    pub(crate) fn take_all(&self) -> Vec<Arc<Session>> {
        *self.door() = Door::Closed;
        let ids: Vec<Box<str>> = self.by_id.iter().map(|session| session.key().clone()).collect();
        ids.iter().filter_map(|id| self.remove(id)).collect()
    }

    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all of these side by side.
    pub(crate) async fn end_all(sessions: Vec<Arc<Session>>, reason: EndReason) {
        futures::future::join_all(sessions.iter().map(|session| session.end(reason.clone()))).await;
    }
}

impl Door {
    fn guests(&mut self) -> Result<&mut HashSet<Arc<str>>, OpenError> {
        match self {
            Self::Open { guests } => Ok(guests),
            Self::Closed => Err(OpenError::Closed),
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod registry_tests;
