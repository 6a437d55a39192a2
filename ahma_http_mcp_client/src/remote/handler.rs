//! What we answer when a mounted server speaks first: very little, on purpose.
//!
//! No capability is declared, so a server has nothing to ask of us; it may only tell us that its tools changed.

use std::sync::Arc;

use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

#[derive(Debug, Clone)]
pub(crate) struct MountHandler {
    name: &'static str,
    pub(crate) tools_changed: Arc<Notify>,
}

impl MountHandler {
    /// `name` is who the server is told that we are.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            tools_changed: Arc::default(),
        }
    }
}

impl ClientHandler for MountHandler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new(self.name, env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}
