//! What we answer when a mounted server speaks first: very little, on purpose.
//!
//! No capability is declared, so a server has nothing to ask of us; it may only tell us that its tools changed.

use std::sync::Arc;

use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

#[derive(Debug, Clone, Default)]
pub(crate) struct MountHandler {
    pub(crate) tools_changed: Arc<Notify>,
}

impl ClientHandler for MountHandler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("ahma_mcp", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}
