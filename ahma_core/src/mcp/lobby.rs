//! Answers that need no sandbox: who this server is, and which tools it has. All else waits here until the sandbox is set
//! up and proven, and is refused if that fails.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use tokio::sync::{Notify, watch};

use super::{error, server::Server, subscriptions::Subscriptions};
use crate::toolbox::{Toolbox, ToolboxHandle};

/// Everything that a client can be told before there is a server.
#[derive(Debug)]
pub(super) struct Lobby {
    pub(super) instructions: String,
    pub(super) toolbox: ToolboxHandle,
    /// Remote servers have tools too, and what they are is not known here.
    pub(super) has_remotes: bool,
    pub(super) shown: Arc<ShownTools>,
    /// Here already, so that no change is missed while the sandbox is being set up.
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) server: watch::Receiver<Arrival>,
    /// Told when a request waits for it.
    pub(super) needed: Arc<Notify>,
}

/// The server, as far as it is known.
#[derive(Debug, Clone)]
pub(super) enum Arrival {
    Awaited,
    Open(Arc<Server>),
    /// It will never come.
    Failed,
}

/// The list of tools that clients were last shown or told about.
#[derive(Debug, Default)]
pub(super) struct ShownTools(Mutex<Option<Arc<Toolbox>>>);

impl ShownTools {
    /// Remembers a list; returns the one before.
    pub(super) fn note(&self, toolbox: Arc<Toolbox>) -> Option<Arc<Toolbox>> {
        self.0.lock().replace(toolbox)
    }

    pub(super) fn is_any(&self) -> bool {
        self.0.lock().is_some()
    }
}

impl Lobby {
    /// The server once its sandbox is proven, for a request that needs it.
    pub(super) async fn server(&self) -> Result<Arc<Server>, ErrorData> {
        if let Arrival::Open(server) = &*self.server.borrow() {
            return Ok(Arc::clone(server));
        }
        self.needed.notify_one();
        self.arrived().await
    }

    /// The server once it is there, for whatever reason it comes.
    pub(super) async fn arrived(&self) -> Result<Arc<Server>, ErrorData> {
        let mut arrival = self.server.clone();
        let arrived = arrival
            .wait_for(|arrival| !matches!(arrival, Arrival::Awaited))
            .await;
        match arrived.as_deref() {
            Ok(Arrival::Open(server)) => Ok(Arc::clone(server)),
            Ok(Arrival::Awaited | Arrival::Failed) | Err(_) => Err(error::no_sandbox()),
        }
    }
}
