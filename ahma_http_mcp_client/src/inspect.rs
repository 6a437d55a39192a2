//! One look at a server: connect, list its tools, leave.

use rmcp::model::{ServerPeerInfo, Tool};
use tokio_util::sync::CancellationToken;

use crate::config::ServerConfig;
use crate::remote::MountHandler;
use crate::session::request::list_tools;
use crate::session::{Attempt, ConnectError, ConnectReport, connect, reason_of};
use crate::settings::ClientSettings;

/// What a server says about itself.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub report: ConnectReport,
    pub server: Option<ServerPeerInfo>,
    pub tools: Vec<Tool>,
}

/// Not the name of one that mounts: a server may show those less (see [`crate::CLIENT_NAME`]).
const INSPECTOR_NAME: &str = "ahma_list_tools";

/// Connects once, without retries and without a login.
pub async fn inspect(config: &ServerConfig, settings: &ClientSettings) -> Result<Inspection, ConnectError> {
    let connection = connect(config, settings, &MountHandler::new(INSPECTOR_NAME)).await?;
    let peer = connection.peer;
    let never = CancellationToken::new();
    let listing = list_tools(&peer, &connection.routes, &never);
    let listed = tokio::time::timeout(settings.connect_patience, listing).await;
    let server = peer.peer_info().map(|info| (*info).clone());
    connection.running.close(settings.connect_patience).await;
    let failed = |reason: String| ConnectError::Failed {
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
