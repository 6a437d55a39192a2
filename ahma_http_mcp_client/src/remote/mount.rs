//! A mounted server: its connection serves to list its tools and to call them.
//!
//! No capability is declared, so a server has nothing to ask of us; it may only tell us that its tools changed.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, SubscriptionFilter, Tool},
    service::{NotificationContext, ServiceError},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    actor::{Purpose, ServerEvent},
    handle::{Control, LiveConnection},
};
use crate::{name::CLIENT_NAME, session::request::list_tools};

const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// A client that only uses tools.
#[derive(Debug, Clone)]
pub(crate) struct ToolClient {
    name: &'static str,
    /// Notified when the server announces other tools.
    actor: Option<mpsc::Sender<Control>>,
}

impl ToolClient {
    /// A client that introduces itself as `name` and listens to no changes.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, actor: None }
    }

    /// The client of a mounted server, which tells its actor of changes.
    pub(super) fn mounting(actor: mpsc::Sender<Control>) -> Self {
        Self {
            name: CLIENT_NAME,
            actor: Some(actor),
        }
    }
}

impl ClientHandler for ToolClient {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new(self.name, env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Some(actor) = &self.actor {
            // A full queue wakes the actor as well.
            let _ = actor.try_send(Control::Check);
        }
    }
}

/// Keeps the list of a mounted server's tools up to date.
impl Purpose for ToolClient {
    type Service = Self;
    const IS_POLLED: bool = true;

    fn service(&self) -> &Self {
        self
    }

    fn subscription(&self) -> SubscriptionFilter {
        SubscriptionFilter::builder().tools_list_changed().build()
    }

    /// Whatever happened, the tools may be others now, and listing them shows whether the server is there.
    async fn on_event(
        &self,
        connection: &LiveConnection,
        _: ServerEvent,
    ) -> Result<Arc<[Tool]>, ServiceError> {
        let never = CancellationToken::new();
        let listing = list_tools(&connection.peer, &connection.routes, &never);
        match tokio::time::timeout(LIST_TIMEOUT, listing).await {
            Ok(tools) => tools.map(Arc::from),
            Err(_) => Err(ServiceError::Timeout {
                timeout: LIST_TIMEOUT,
            }),
        }
    }
}
