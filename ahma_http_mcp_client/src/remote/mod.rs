//! All remote servers of one process, each with an actor of its own, so that none can delay another.
//!
//! [`RemoteServers`] is the handle: it publishes what each server is doing and takes calls.
//! The actors are in [`actor`]; how a connection is made is the business of [`crate::session`].

mod actor;
mod call;
mod handler;
mod login_news;
mod state;

pub use call::CallError;
pub(crate) use handler::MountHandler;
pub use login_news::LoginNews;
pub(crate) use state::Nudge;
pub use state::{ServerState, Snapshot};

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResponse, ProgressNotificationParam};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::ServerConfig;
use crate::settings::ClientSettings;
use actor::Actor;
use state::{Board, Slot};

/// The remote servers, connected in the background.
#[derive(Debug)]
pub struct RemoteServers {
    slots: BTreeMap<String, Arc<Slot>>,
    board: Arc<Board>,
    shutdown: CancellationToken,
    actors: TaskTracker,
}

impl RemoteServers {
    /// Starts one actor for each server and returns at once. Must be called inside a Tokio runtime.
    pub fn start(servers: Vec<ServerConfig>, settings: ClientSettings) -> Self {
        let board = Arc::new(Board::new(servers.iter().map(|server| server.name.clone())));
        let shutdown = CancellationToken::new();
        let settings = Arc::new(settings);
        let actors = TaskTracker::new();
        let mut slots = BTreeMap::new();
        for config in servers {
            let (slot, nudges) = Slot::new(&config, &settings);
            let slot = Arc::new(slot);
            slots.insert(config.name.clone(), Arc::clone(&slot));
            let actor = Actor::new(
                config,
                Arc::clone(&settings),
                slot,
                Arc::clone(&board),
                nudges,
                shutdown.clone(),
            );
            actors.spawn(actor.run());
        }
        actors.close();
        Self {
            slots,
            board,
            shutdown,
            actors,
        }
    }

    /// What every server is doing now. Changes wake the receiver; tools are in [`ServerState::Ready`].
    pub fn states(&self) -> watch::Receiver<Snapshot> {
        self.board.subscribe()
    }

    /// Calls a tool by the server's own name for it.
    ///
    /// Waits for a server that is just connecting. Progress goes to `progress` in the server's order; what does
    /// not fit in the channel is dropped. Cancelling, or dropping the future, cancels the call at the server.
    pub async fn call(
        &self,
        server: &str,
        params: CallToolRequestParams,
        progress: Option<mpsc::Sender<ProgressNotificationParam>>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResponse, CallError> {
        let Some(slot) = self.slots.get(server) else {
            return Err(CallError::UnknownServer {
                server: server.to_owned(),
            });
        };
        call::call(server, slot, &self.board, params, progress, cancel).await
    }

    /// Ends all connections: sessions are deleted, programs are stopped.
    pub async fn shutdown(&self) {
        self.shutdown.cancel();
        self.actors.wait().await;
    }
}

impl Drop for RemoteServers {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
