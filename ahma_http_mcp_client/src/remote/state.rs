//! What is known about each server, and who may look at it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::RoleClient;
use rmcp::model::Tool;
use rmcp::service::Peer;
use tokio::sync::{mpsc, watch};
use url::Url;

use crate::config::{HttpEndpoint, ServerConfig};
use crate::session::ConnectReport;
use crate::session::progress::ProgressRoutes;
use crate::settings::ClientSettings;

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
    pub(super) fn login_required(advice: &str) -> Self {
        Self::LoginRequired {
            link: None,
            reason: advice.to_owned(),
        }
    }

    /// What the user has to do, if it is a login.
    pub(super) fn how_to_log_in(&self) -> Option<String> {
        match self {
            Self::LoginRequired { link: Some(link), .. } => Some(format!("open {link}")),
            Self::LoginRequired { link: None, reason } => Some(reason.clone()),
            _ => None,
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

    /// Says that a server which counted as ready wants a login. What its actor has found out meanwhile stays.
    pub(super) fn doubt(&self, server: &str, advice: &str) {
        self.snapshot
            .send_if_modified(|snapshot| match snapshot.get_mut(server) {
                Some(state @ ServerState::Ready { .. }) => {
                    *state = ServerState::login_required(advice);
                    true
                }
                _ => false,
            });
    }

    /// What the user has to do for a server, if it is a login.
    pub(super) fn how_to_log_in(&self, server: &str) -> Option<String> {
        self.snapshot.borrow().get(server)?.how_to_log_in()
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
pub(crate) enum Nudge {
    /// A call needs the server, or was lost: look now.
    Retry,
    /// A call was answered with a challenge.
    LoginRequired(String),
}

/// The meeting point of an actor and the callers of its server.
#[derive(Debug)]
pub(super) struct Slot {
    /// The user brings the credentials: a login would change nothing.
    pub(super) has_own_credentials: bool,
    /// How to log in where no link is shown.
    pub(super) login_advice: String,
    live: Mutex<Option<Live>>,
    nudges: mpsc::Sender<Nudge>,
}

/// A connection that can be used.
#[derive(Debug, Clone)]
pub(super) struct Live {
    /// Tells one connection from the next.
    pub(super) connection: Arc<()>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) routes: ProgressRoutes,
}

impl Slot {
    pub(super) fn new(config: &ServerConfig, settings: &ClientSettings) -> (Self, mpsc::Receiver<Nudge>) {
        // One waiting nudge is as good as ten.
        let (nudges, received) = mpsc::channel(1);
        (
            Self {
                has_own_credentials: config
                    .http
                    .as_ref()
                    .is_some_and(HttpEndpoint::has_own_credentials),
                login_advice: settings.login_command.advice(&config.name),
                live: Mutex::default(),
                nudges,
            },
            received,
        )
    }

    pub(super) fn live(&self) -> Option<Live> {
        self.lock().clone()
    }

    pub(super) fn is_current(&self, live: &Live) -> bool {
        let current = self.lock();
        current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(&current.connection, &live.connection))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_hides_nothing_that_is_known_better() {
        let link = ServerState::LoginRequired {
            link: Some("https://x.example/login".parse().unwrap()),
            reason: "open the link to log in".to_owned(),
        };
        let connecting = ServerState::Connecting { problem: None };
        let ready = ServerState::Ready {
            report: Arc::new(ConnectReport {
                step: crate::session::Step::StreamableHttp,
                protocol: String::new(),
                attempts: Vec::new(),
            }),
            tools: Arc::default(),
        };
        for (before, after) in [
            (link.clone(), link),
            (connecting.clone(), connecting),
            (ready, ServerState::login_required("run x")),
        ] {
            let board = Board::new(["s".to_owned()].into_iter());
            board.publish("s", before);
            board.doubt("s", "run x");
            assert_eq!(board.subscribe().borrow().get("s"), Some(&after));
        }
    }
}
