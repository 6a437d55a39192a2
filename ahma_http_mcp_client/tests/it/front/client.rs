//! The client of a front.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use ahma_http_mcp_client::{ClientSettings, FrontNews, RemoteError, config::ServerConfig, front};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, Implementation, ProtocolVersion, ResourceUpdatedNotificationParam,
    },
    service::{
        ClientLifecycleMode, NotificationContext, RequestContext, RunningService, serve_client_with_lifecycle,
    },
};
use tokio::task::JoinHandle;

use crate::{
    fixture::{server, settings, tools::Era},
    remote::call_of,
};

/// A client that answers questions and counts what it is told.
#[derive(Clone, Default)]
pub(super) struct Client {
    pub(super) progress: Arc<AtomicU32>,
    pub(super) tools_changed: Arc<AtomicU32>,
    pub(super) updates: Arc<AtomicU32>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("tester", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(serde_json::json!({"color": "blue"})))
    }

    async fn on_progress(
        &self,
        _: rmcp::model::ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.fetch_add(1, Ordering::SeqCst);
    }

    async fn on_resource_updated(
        &self,
        _: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.updates.fetch_add(1, Ordering::SeqCst);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.fetch_add(1, Ordering::SeqCst);
    }
}

pub(super) type Front = JoinHandle<Result<(), RemoteError>>;

pub(super) async fn start(
    url: &str,
    era: Era,
    client: &Client,
) -> (RunningService<RoleClient, Client>, Front, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (service, front) = start_with(server("r", url), settings(&dir), era, client, |_| ()).await;
    (service, front, dir)
}

pub(super) async fn start_with(
    config: ServerConfig,
    settings: ClientSettings,
    era: Era,
    client: &Client,
    tell: impl Fn(FrontNews<'_>) + Send + Sync + 'static,
) -> (RunningService<RoleClient, Client>, Front) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(far);
    let front = tokio::spawn(async move { front(input, output, &config, &settings, tell).await });
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::LATEST],
        },
    };
    let service = serve_client_with_lifecycle(client.clone(), near, lifecycle)
        .await
        .unwrap();
    (service, front)
}

/// The client leaves, and the front ends with it.
pub(super) async fn leave(service: RunningService<RoleClient, Client>, front: Front) {
    service.cancel().await.unwrap();
    let ended = tokio::time::timeout(test_support::TEST_TIMEOUT, front).await;
    ended.unwrap().unwrap().unwrap();
}

pub(super) async fn call(
    service: &RunningService<RoleClient, Client>,
    params: CallToolRequestParams,
) -> String {
    let result = tokio::time::timeout(test_support::TEST_TIMEOUT, service.call_tool(params))
        .await
        .unwrap()
        .unwrap();
    serde_json::to_string(&result.content).unwrap()
}

/// Calls until the answer is the wanted one.
pub(super) async fn call_until(
    service: &RunningService<RoleClient, Client>,
    what: &str,
    wanted: impl Fn(Result<(), String>) -> bool,
) {
    let asking = async {
        let echo = || service.call_tool(call_of("echo", serde_json::json!({})));
        while !wanted(echo().await.map(drop).map_err(|error| error.to_string())) {}
    };
    let waited = tokio::time::timeout(test_support::TEST_TIMEOUT, asking).await;
    waited.unwrap_or_else(|_| panic!("gave up waiting for {what}"));
}
