//! Events of a transport that the protocol above it cannot see.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use ahma_common::retry::RetryPolicy;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use tokio::sync::mpsc;

use super::resume::Resumes;

/// An event below the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkEvent {
    /// The server forgot our session and a new one was opened: its tools may be others now.
    SessionRenewed,
    /// The server forgot our session, and nothing was sent yet that would open a new one.
    SessionLost,
    /// The server could not be reached for a while, and is there again: possibly restarted.
    Returned,
    /// A stream could not be resumed: the server is down.
    GaveUp,
}

/// Shared by all parts of one connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) retry: RetryPolicy,
    pub(super) resumes: Resumes,
    established: AtomicBool,
    /// The last connection was refused.
    away: AtomicBool,
    sessions: AtomicU32,
    events: mpsc::Sender<LinkEvent>,
}

impl Link {
    pub(crate) fn new(retry: RetryPolicy) -> (Arc<Self>, mpsc::Receiver<LinkEvent>) {
        // Events only say "look again": when the queue is full, that has been said.
        let (events, received) = mpsc::channel(8);
        let link = Self {
            retry,
            resumes: Resumes::default(),
            established: AtomicBool::new(false),
            away: AtomicBool::new(false),
            sessions: AtomicU32::new(0),
            events,
        };
        (Arc::new(link), received)
    }

    /// From now on a refused connection means "restarting", and is worth waiting for.
    pub(crate) fn establish(&self) {
        self.established.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_established(&self) -> bool {
        self.established.load(Ordering::Relaxed)
    }

    pub(super) fn initialized(&self) {
        if self.sessions.fetch_add(1, Ordering::Relaxed) > 0 {
            self.report(LinkEvent::SessionRenewed);
        }
    }

    pub(super) fn refused(&self) {
        self.away.store(true, Ordering::Relaxed);
    }

    pub(super) fn answered(&self) {
        if self.away.swap(false, Ordering::Relaxed) {
            self.report(LinkEvent::Returned);
        }
    }

    pub(super) fn report(&self, event: LinkEvent) {
        let _ = self.events.try_send(event);
    }
}

/// The link's retry rule, as rmcp's streams ask for it.
#[derive(Debug)]
pub(super) struct StreamRetry {
    link: Arc<Link>,
}

impl StreamRetry {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link }
    }
}

impl SseRetryPolicy for StreamRetry {
    fn retry(&self, current_times: usize) -> Option<Duration> {
        let delay = self
            .link
            .retry
            .delay(u32::try_from(current_times).unwrap_or(u32::MAX));
        if delay.is_none() {
            self.link.report(LinkEvent::GaveUp);
        }
        delay
    }
}
