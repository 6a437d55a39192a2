//! All sessions: how many there may be, who may find which, and when one is forgotten.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::Mutex;
use uuid::Uuid;

use super::error::RequestError;
use super::kept::KeptSession;
use super::session::{Session, SessionParams};
use super::state::EndReason;
use crate::auth::Principal;
use crate::child::ClientId;

/// Sessions that ended with a refusal are remembered to say so; this many at most.
const MAX_REFUSED: usize = 256;

#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: DashMap<Box<str>, Arc<Session>>,
    next_serial: AtomicU64,
    /// The numbers of principals that were served without a session.
    without_session: DashMap<Arc<str>, ClientId>,
    max: usize,
    /// Held while counting and inserting, so that the cap is exact and nothing opens while all sessions are being ended.
    admission: Mutex<Admission>,
}

/// A session of another bridge that is in the registry now.
#[derive(Debug)]
pub(crate) enum TakenOver {
    Now(Arc<Session>),
    /// By another request, which does the rest.
    Before(Arc<Session>),
}

#[derive(Debug)]
enum Admission {
    Open {
        /// Clients that have a child without a session, which counts as one.
        sessionless: HashSet<Arc<str>>,
    },
    /// Nothing may be opened any more, since nothing would end it.
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
            admission: Mutex::new(Admission::Open {
                sessionless: HashSet::new(),
            }),
        }
    }

    pub(crate) fn open(&self, params: SessionParams) -> Result<Arc<Session>, RequestError> {
        let mut admission = self.admission.lock();
        let session = self.admit(&mut admission, Uuid::new_v4().to_string(), params)?;
        self.by_id.insert(session.id().into(), Arc::clone(&session));
        Ok(session)
    }

    /// Adds a session that another bridge has opened. Of several requests for it only the first does.
    pub(crate) fn take_over(
        &self,
        id: &str,
        params: SessionParams,
        kept: KeptSession,
    ) -> Result<TakenOver, RequestError> {
        let mut admission = self.admission.lock();
        if let Some(known) = self.by_id.get(id) {
            return Ok(TakenOver::Before(Arc::clone(&known)));
        }
        let session = self.admit(&mut admission, id.to_owned(), params)?;
        session.belongs_to(kept);
        self.by_id.insert(session.id().into(), Arc::clone(&session));
        Ok(TakenOver::Now(session))
    }

    fn admit(
        &self,
        admission: &mut Admission,
        id: String,
        params: SessionParams,
    ) -> Result<Arc<Session>, RequestError> {
        self.refuse_if_full(admission.sessionless()?, &params.principal)?;
        let mut refused: Vec<_> = (self.by_id.iter())
            .filter(|session| session.end_reason().is_some())
            .map(|session| (session.serial(), session.key().clone()))
            .collect();
        refused.sort();
        for (_, id) in refused.iter().rev().skip(MAX_REFUSED) {
            self.by_id.remove(id);
        }
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        Ok(Session::new(id, serial, params))
    }

    /// The number of a principal whose requests stand alone.
    pub(crate) fn client_without_session(&self, principal: &Arc<str>) -> ClientId {
        if let Some(known) = self.without_session.get(principal) {
            return *known;
        }
        *self
            .without_session
            .entry(Arc::clone(principal))
            .or_insert_with(|| self.next_serial.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts the child of a client without a session.
    pub(crate) fn admit_sessionless(&self, principal: &Principal) -> Result<(), RequestError> {
        let mut admission = self.admission.lock();
        let sessionless = admission.sessionless()?;
        self.refuse_if_full(sessionless, principal)?;
        sessionless.insert(Arc::clone(&principal.name));
        Ok(())
    }

    /// Refuses another child for a client without a session, which is counted already, once everything ends.
    pub(crate) fn readmit_sessionless(&self) -> Result<(), RequestError> {
        self.admission.lock().sessionless().map(drop)
    }

    pub(crate) fn dismiss_sessionless(&self, name: &Arc<str>) {
        if let Ok(sessionless) = self.admission.lock().sessionless() {
            sessionless.remove(name);
        }
    }

    fn refuse_if_full(
        &self,
        sessionless: &HashSet<Arc<str>>,
        principal: &Principal,
    ) -> Result<(), RequestError> {
        let (mut live, mut of_principal) = (
            sessionless.len(),
            usize::from(sessionless.contains(&principal.name)),
        );
        for session in self.by_id.iter().filter(|session| session.end_reason().is_none()) {
            live += 1;
            of_principal += usize::from(session.principal().name == principal.name);
        }
        if live >= self.max {
            return Err(RequestError::TooManySessions(self.max));
        }
        match principal.max_sessions.filter(|cap| of_principal >= *cap) {
            Some(cap) => Err(RequestError::TooManyClientSessions(cap)),
            None => Ok(()),
        }
    }

    /// The session of this client with this id. Another client's is not found.
    pub(crate) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.by_id.get(id)?;
        (session.principal().name == principal.name).then(|| Arc::clone(&session))
    }

    /// Takes a session out, so that it is not found from now on.
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

    /// Takes out the sessions that are to end, with the reason: those that have been idle for so long, those whose client
    /// is gone and that nothing of runs, and those that ended and were not asked for since.
    pub(crate) fn take_expired(&self, idle: Duration) -> Vec<(Arc<Session>, EndReason)> {
        let expiry = |session: &Session| {
            let gone = session.end_reason().filter(|reason| !reason.is_refusal());
            gone.or_else(|| session.expiry(idle))
        };
        let expired: Vec<(Box<str>, EndReason)> = self
            .by_id
            .iter()
            .filter_map(|session| Some((session.key().clone(), expiry(&session)?)))
            .collect();
        let take = |(id, reason): (Box<str>, EndReason)| Some((self.remove(&id)?, reason));
        expired.into_iter().filter_map(take).collect()
    }

    /// Takes out every session, for the end of the bridge. From now on no session opens, and clients without one are refused.
    pub(crate) fn take_all(&self) -> Vec<Arc<Session>> {
        *self.admission.lock() = Admission::Closed;
        let ids: Vec<Box<str>> = self.by_id.iter().map(|session| session.key().clone()).collect();
        ids.iter().filter_map(|id| self.remove(id)).collect()
    }
}

impl Admission {
    fn sessionless(&mut self) -> Result<&mut HashSet<Arc<str>>, RequestError> {
        match self {
            Self::Open { sessionless } => Ok(sessionless),
            Self::Closed => Err(RequestError::ShuttingDown),
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
