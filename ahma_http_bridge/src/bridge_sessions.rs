//! Sessions that several bridges share: found at any of them by their id, and ended for all.

use std::sync::Arc;
use std::time::Duration;

use ahma_common::envelope::Envelope;
use serde_json::json;
use tokio::time::MissedTickBehavior;

use crate::auth::Principal;
use crate::bridge::Bridge;
use crate::session::{EndReason, KeptSession, RequestError, Session, TakenOver, Transport};

/// Records are written anew at most so often, so that those of sessions in use do not grow old.
const TOUCH_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Sessions in use are looked up at least so often: one that only listens would not notice that it was ended elsewhere.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

impl Bridge {
    /// The session of this client with this id, also if another bridge has opened it. Another client's is not found.
    pub(crate) async fn find_session(
        self: &Arc<Self>,
        id: &str,
        principal: &Arc<Principal>,
    ) -> Result<Option<Arc<Session>>, RequestError> {
        if let Some(session) = self.sessions.find(id, principal) {
            // One that has ended here says why.
            if session.end_reason().is_some() || session.look_again().await {
                return Ok(Some(session));
            }
            self.end_session_later(session, EndReason::EndedElsewhere);
            return Ok(None);
        }
        let Some(kept) = self.kept_session(id, principal).await? else {
            return Ok(None);
        };
        self.refuse_under_pressure()?;
        let params = self.session_params(principal, Transport::StreamableHttp);
        let session = match self.sessions.take_over(id, params, kept)? {
            TakenOver::Before(session) => {
                let is_own = session.principal().name == principal.name;
                return Ok(is_own.then_some(session));
            }
            TakenOver::Now(session) => session,
        };
        self.metrics.session_opened();
        self.record_taken_over(&session);
        let taken_over = Arc::clone(&session);
        // It goes on even if the client does not wait.
        let _ = self.tasks.spawn(async move { taken_over.go_on().await }).await;
        Ok(Some(session))
    }

    /// Records a session that was opened here, if other bridges are to find it.
    pub(crate) async fn keep_session(&self, session: &Session, initialize: &Envelope<'_>) {
        if let Some(store) = &self.settings.session_store {
            session.keep(store, initialize).await;
        }
    }

    /// Ends the session of this client with this id at every bridge. False if there is none.
    pub(crate) async fn delete_session(
        &self,
        id: &str,
        principal: &Arc<Principal>,
    ) -> Result<bool, RequestError> {
        let own = self.sessions.find(id, principal);
        let own = own.filter(|session| session.transport() == Transport::StreamableHttp);
        if let Some(kept) = self.kept_session(id, principal).await? {
            // First, and with an error if that is not possible: the client is told that the session has ended.
            kept.remove().await?;
            if let Some(session) = own {
                self.end_session(session, EndReason::Deleted).await;
            }
            return Ok(true);
        }
        let Some(session) = own else { return Ok(false) };
        let was_recorded = session.kept().is_some_and(KeptSession::is_written);
        let reason = match was_recorded {
            true => EndReason::EndedElsewhere,
            false => EndReason::Deleted,
        };
        self.end_session(session, reason).await;
        Ok(!was_recorded)
    }

    /// Keeps the records of sessions that are in use here from growing old, and ends those that were ended elsewhere, until
    /// the bridge stops.
    pub(crate) async fn look_after_records(self: Arc<Self>) {
        if self.settings.session_store.is_none() {
            return;
        }
        let idle = self.settings.times.session_idle;
        let tick = self.touch_interval().min(LOOK_INTERVAL) / 4;
        let mut ticks = tokio::time::interval(tick.max(Duration::from_millis(20)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            for session in self.sessions.all() {
                let Some(kept) = session.kept().filter(|_| session.end_reason().is_none()) else {
                    continue;
                };
                let was_used_since = session.idle_for() < kept.age().min(idle);
                let is_due = kept.age() > self.touch_interval() || !kept.is_written();
                let goes_on = if was_used_since && is_due {
                    session.touch_record().await
                } else if session.idle_for().is_zero() && kept.unseen_for() > LOOK_INTERVAL {
                    session.look_again().await
                } else {
                    true
                };
                if !goes_on {
                    self.end_session_later(session, EndReason::EndedElsewhere);
                }
            }
        }
    }

    /// The record of a session of this client that is in use somewhere.
    async fn kept_session(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Result<Option<KeptSession>, RequestError> {
        let Some(store) = &self.settings.session_store else {
            return Ok(None);
        };
        let max_age = self.settings.times.session_idle + self.touch_interval();
        let kept = KeptSession::find(store, id, max_age).await?;
        Ok(kept.filter(|kept| *kept.record().principal == *principal.name))
    }

    fn touch_interval(&self) -> Duration {
        TOUCH_INTERVAL.min(self.settings.times.session_idle / 4)
    }

    fn record_taken_over(&self, session: &Session) {
        let record = session.kept().map(KeptSession::record);
        let initialize = record.as_ref().map(|record| record.initialize.as_bytes());
        let initialize = initialize.and_then(|text| Envelope::parse(text).ok());
        let client = initialize.and_then(|initialize| self.note_client(session, &initialize, None));
        self.audit.record(
            "session_taken_over",
            json!({
                "principal": &*session.principal().name,
                "session": session.id(),
                "client": client,
            }),
        );
    }
}
