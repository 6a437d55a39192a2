//! What is known about each server, and who may look at it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::RoleClient;
use rmcp::model::Tool;
use rmcp::service::Peer;
use tokio::sync::{mpsc, watch};
use url::Url;

use crate::session::ConnectReport;
use crate::session::progress::ProgressRoutes;

/// The states of all servers, by name.
pub type Snapshot = BTreeMap<String, ServerState>;

/// What a server is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerState {
    /// Being connected; `problem` is why the last try failed.
    Connecting { problem: Option<String> },
    Ready {
        report: Arc<ConnectReport>,
        tools: Arc<[Tool]>,
    },
    /// `link` is the page to open, when a login has been started; `reason` says how to log in otherwise.
    LoginRequired { link: Option<Url>, reason: String },
    /// Given up for now: tried again from time to time, and when it is called.
    Failed { reason: String },
}

impl ServerState {
    /// Before a link is there.
    pub(super) fn login_required(server: &str) -> Self {
        Self::LoginRequired {
            link: None,
            reason: format!("run `ahma_mcp login {server}`"),
        }
    }
}

/// Where actors write and everybody else reads.
#[derive(Debug)]
pub(super) struct Board {
    snapshot: watch::Sender<Snapshot>,
}

impl Board {
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        let snapshot = names
            .map(|name| (name, ServerState::Connecting { problem: None }))
            .collect();
        Self {
            snapshot: watch::Sender::new(snapshot),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.subscribe()
    }

    /// Wakes readers only when something is different.
    pub(super) fn publish(&self, server: &str, state: ServerState) {
        self.snapshot.send_if_modified(|snapshot| {
            if snapshot.get(server) == Some(&state) {
                return false;
            }
            snapshot.insert(server.to_owned(), state);
            true
        });
    }
}

/// What a caller asks an actor to do.
#[derive(Debug)]
pub(super) enum Nudge {
    /// A call needs the server: try again now.
    Retry,
    /// A call was answered with a challenge.
    LoginRequired(String),
}

/// The meeting point of an actor and the callers of its server.
#[derive(Debug)]
pub(super) struct Slot {
    live: Mutex<Option<Live>>,
    nudges: mpsc::Sender<Nudge>,
}

/// A connection that can be used.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) routes: ProgressRoutes,
}

impl Slot {
    pub(super) fn new() -> (Self, mpsc::Receiver<Nudge>) {
        // One waiting nudge is as good as ten.
        let (nudges, received) = mpsc::channel(1);
        (
            Self {
                live: Mutex::default(),
                nudges,
            },
            received,
        )
    }

    pub(super) fn live(&self) -> Option<Live> {
        self.lock().clone()
    }

    pub(super) fn set_live(&self, live: Option<Live>) {
        *self.lock() = live;
    }

    pub(super) fn nudge(&self, nudge: Nudge) {
        let _ = self.nudges.try_send(nudge);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Live>> {
        self.live
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
