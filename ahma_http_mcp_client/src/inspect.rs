//! One visit to a server: connect, list its tools, disconnect.

use rmcp::model::{ServerPeerInfo, Tool};
use tokio_util::sync::CancellationToken;

use crate::{
    config::ServerConfig,
    error::RemoteError,
    remote::ToolClient,
    session::{Attempt, ConnectReport, connect, reason_of, request::list_tools},
    settings::ClientSettings,
};

/// A server's description of itself.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub report: ConnectReport,
    pub server: Option<ServerPeerInfo>,
    pub tools: Vec<Tool>,
}

/// Differs from [`crate::CLIENT_NAME`], because a server may show fewer tools to a client that mounts them.
const INSPECTOR_NAME: &str = "ahma_list_tools";

/// Connects once, without retries and without a login.
pub async fn inspect(config: &ServerConfig, settings: &ClientSettings) -> Result<Inspection, RemoteError> {
    let connection = connect(config, settings, &ToolClient::new(INSPECTOR_NAME)).await;
    let connection = connection.map_err(|failure| {
        RemoteError::of_connect(failure, &config.name, settings.login_command.advice(&config.name))
    })?;
    let peer = connection.peer;
    let never = CancellationToken::new();
    let listing = list_tools(&peer, &connection.routes, &never);
    let listed = tokio::time::timeout(settings.connect_timeout, listing).await;
    let server = peer.peer_info().map(|info| (*info).clone());
    connection.running.close(settings.connect_timeout).await;
    let failed = |reason: String| RemoteError::Connect {
        server: config.name.clone(),
        attempts: vec![Attempt {
            step: connection.report.step,
            outcome: Err(reason),
        }],
    };
    let tools = match listed {
        Ok(Ok(tools)) => tools,
        Ok(Err(error)) => return Err(failed(format!("tools/list failed: {}", reason_of(&error)))),
        Err(_) => return Err(failed("tools/list was not answered in time".to_owned())),
    };
    Ok(Inspection {
        report: connection.report,
        server,
        tools,
    })
}
