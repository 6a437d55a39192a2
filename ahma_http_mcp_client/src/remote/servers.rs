//! All mounted servers of one process.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, ProgressNotificationParam,
    ServerResult,
};
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    actor::{Actor, ConnectionHistory, Persistence},
    handle::ServerHandle,
    mount::ToolClient,
    state::{Snapshot, StateBoard},
};
use crate::{config::ServerConfig, error::RemoteError, settings::ClientSettings};

/// The remote servers, connected in the background.
#[derive(Debug)]
pub struct RemoteServers {
    servers: BTreeMap<String, Arc<ServerHandle>>,
    board: Arc<StateBoard>,
    shutdown: CancellationToken,
    actors: TaskTracker,
}

impl RemoteServers {
    /// Starts one actor for each server and returns at once. Must be called inside a Tokio runtime.
    pub fn start(configs: Vec<ServerConfig>, settings: ClientSettings) -> Self {
        let board = Arc::new(StateBoard::new(configs.iter().map(|config| config.name.clone())));
        let shutdown = CancellationToken::new();
        let settings = Arc::new(settings);
        let actors = TaskTracker::new();
        let mut servers = BTreeMap::new();
        for config in configs {
            let (handle, controls) = ServerHandle::new(&config, &settings, Arc::clone(&board));
            let purpose = ToolClient::mounting(handle.control());
            servers.insert(config.name.clone(), Arc::clone(&handle));
            let actor = Actor {
                config,
                settings: Arc::clone(&settings),
                server: handle,
                controls,
                purpose,
                persistence: Persistence::Unlimited,
                shutdown: shutdown.clone(),
                history: ConnectionHistory::new(&settings),
            };
            actors.spawn(actor.run());
        }
        actors.close();
        Self {
            servers,
            board,
            shutdown,
            actors,
        }
    }

    /// The current state of every server. Changes wake the receiver; tools are in
    /// [`ServerState::Ready`](super::ServerState::Ready).
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
    ) -> Result<CallToolResponse, RemoteError> {
        let Some(handle) = self.servers.get(server) else {
            return Err(RemoteError::UnknownServer {
                server: server.to_owned(),
            });
        };
        let connection = tokio::select! {
            connection = handle.connection() => connection?,
            () = cancel.cancelled() => return Err(RemoteError::Cancelled),
        };
        let call = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match handle.request(&connection, call, progress, cancel).await? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            _ => Err(RemoteError::Lost {
                server: server.to_owned(),
                reason: "its answer is not the result of a tool call".to_owned(),
            }),
        }
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
