//! A bridge in the process of the test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ahma_http_bridge::{BridgeSettings, ChildCommand, ChildFactory, FixedCommand, Isolation, Spawn, serve};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Client, TEST_TIMEOUT, eventually, fake_mcp, http_client};

#[derive(Debug)]
struct NamingClients(FixedCommand);

impl ChildFactory for NamingClients {
    fn command(&self, spawn: &Spawn) -> ChildCommand {
        ChildCommand {
            keeps_clients_apart: true,
            ..self.0.command(spawn)
        }
    }
}

/// A running bridge. Dropping it stops the bridge in the background; `stop` waits.
pub(crate) struct Bridge {
    pub(crate) address: SocketAddr,
    pub(crate) scope: TempDir,
    shutdown: CancellationToken,
    served: tokio::task::JoinHandle<Result<(), ahma_http_bridge::ServeError>>,
}

impl Bridge {
    pub(crate) async fn shared() -> Self {
        Self::start(&[], |_| {}).await
    }

    pub(crate) async fn isolated() -> Self {
        Self::start(&[], |settings| settings.isolation = Isolation::PerSession).await
    }

    /// Starts a bridge with one child that is told which client a request comes from.
    pub(crate) async fn shared_naming_clients() -> Self {
        Self::naming_clients(|_| {}).await
    }

    /// Starts a bridge whose children are told which client and principal a request comes from.
    pub(crate) async fn naming_clients(adjust: impl FnOnce(&mut BridgeSettings)) -> Self {
        Self::with_factory(&[], adjust, |factory| Arc::new(NamingClients(factory))).await
    }

    /// Starts a bridge whose children get these flags.
    pub(crate) async fn start(child_flags: &[&str], adjust: impl FnOnce(&mut BridgeSettings)) -> Self {
        Self::with_factory(child_flags, adjust, |factory| Arc::new(factory)).await
    }

    async fn with_factory(
        child_flags: &[&str],
        adjust: impl FnOnce(&mut BridgeSettings),
        wrap: impl FnOnce(FixedCommand) -> Arc<dyn ChildFactory>,
    ) -> Self {
        let scope = tempfile::tempdir().unwrap();
        let root = scope.path().canonicalize().unwrap();
        let mut settings = BridgeSettings::new(root.clone());
        settings.times.stop_grace = Duration::from_millis(300);
        settings.metrics = true;
        adjust(&mut settings);
        let factory = FixedCommand {
            program: fake_mcp().into(),
            args: child_flags.iter().map(Into::into).collect(),
            default_scope: root,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve(
            listener,
            settings,
            wrap(factory),
            None,
            shutdown.clone(),
            |_| {},
        ));
        Self {
            address,
            scope,
            shutdown,
            served,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            url: self.url("/mcp"),
            session: None,
            http: http_client(),
        }
    }

    /// A client with a session.
    pub(crate) async fn session(&self) -> Client {
        let mut client = self.client();
        client.initialize(json!({})).await;
        client
    }

    /// Waits until this many requests are with the children.
    pub(crate) async fn wait_for_open_calls(&self, count: usize) {
        self.wait_for_gauge("ahma_open_calls", |found| found == count)
            .await;
    }

    /// Waits until no more connections are open, this question's own among them.
    pub(crate) async fn wait_for_connections_down_to(&self, count: usize) {
        self.wait_for_gauge("ahma_connections", |found| found <= count)
            .await;
    }

    /// Waits until this many sessions are open.
    pub(crate) async fn wait_for_sessions(&self, count: usize) {
        self.wait_for_gauge("ahma_sessions", |found| found == count).await;
    }

    async fn wait_for_gauge(&self, name: &str, is_wanted: impl Fn(usize) -> bool) {
        let http = http_client();
        eventually(name, async || {
            let metrics = http.get(self.url("/metrics")).send().await.unwrap();
            let text = metrics.text().await.unwrap();
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find_map(|(found, value)| (found == name).then_some(value));
            is_wanted(found.unwrap().parse().unwrap())
        })
        .await;
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        tokio::time::timeout(TEST_TIMEOUT, &mut self.served)
            .await
            .expect("the bridge stops")
            .unwrap()
            .unwrap();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
