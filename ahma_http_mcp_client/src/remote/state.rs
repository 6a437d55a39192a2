//! The published state of each server. Only actors write it.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::model::Tool;
use tokio::sync::watch;
use url::Url;

use crate::session::ConnectReport;

/// The states of all servers, by name.
pub type Snapshot = BTreeMap<String, ServerState>;

/// The state of one server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerState {
    /// Being connected; `problem` is the failure of the last attempt.
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
    /// The state before a link is offered.
    pub(super) fn login_required(advice: &str) -> Self {
        Self::LoginRequired {
            link: None,
            reason: advice.to_owned(),
        }
    }

    /// The page to open or the command to run, if a login is required.
    pub(super) fn how_to_log_in(&self) -> Option<String> {
        match self {
            Self::LoginRequired { link: Some(link), .. } => Some(format!("open {link}")),
            Self::LoginRequired { link: None, reason } => Some(reason.clone()),
            _ => None,
        }
    }
}

/// The states of all servers of one process.
#[derive(Debug)]
pub(crate) struct StateBoard {
    snapshot: watch::Sender<Snapshot>,
}

impl StateBoard {
    pub(crate) fn new(names: impl Iterator<Item = String>) -> Self {
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

    /// Marks a server that counted as ready as requiring a login. What its actor has found out meanwhile stays.
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
            let board = StateBoard::new(["s".to_owned()].into_iter());
            board.publish("s", before);
            board.doubt("s", "run x");
            assert_eq!(board.subscribe().borrow().get("s"), Some(&after));
        }
    }
}
