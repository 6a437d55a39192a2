//! A remote server behind stdin and stdout, with clients and servers of both eras.

#![expect(
    deprecated,
    reason = "log levels and resource subscriptions are deprecated, and clients still use them"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ahma_http_mcp_client::config::ServerConfig;
use ahma_http_mcp_client::{ClientSettings, ConnectError, FrontError, FrontNews, LoginMode, front, logout};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, Implementation, LoggingLevel, ProtocolVersion, ResourceUpdatedNotificationParam,
    ServerNotification, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, RequestContext, RunningService, serve_client_with_lifecycle,
};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::JoinHandle;

use crate::fixture::auth::{AuthHost, Manners};
use crate::fixture::host::Host;
use crate::fixture::tools::{Era, Shared, router};
use crate::fixture::{eventually, server, settings};
use crate::login::{browse, endpoint, log_in};
use crate::programs::program;
use crate::remote::call_of;

/// A client that answers questions and counts what it is told.
#[derive(Clone, Default)]
struct Client {
    progress: Arc<AtomicU32>,
    tools_changed: Arc<AtomicU32>,
    updates: Arc<AtomicU32>,
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

type Front = JoinHandle<Result<(), FrontError>>;

async fn start(
    url: &str,
    era: Era,
    client: &Client,
) -> (RunningService<RoleClient, Client>, Front, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (service, front) = start_with(server("r", url), settings(&dir), era, client, |_| ()).await;
    (service, front, dir)
}

async fn start_with(
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

async fn call(service: &RunningService<RoleClient, Client>, params: CallToolRequestParams) -> String {
    let result = tokio::time::timeout(test_support::PATIENCE, service.call_tool(params))
        .await
        .unwrap()
        .unwrap();
    serde_json::to_string(&result.content).unwrap()
}

#[tokio::test]
async fn every_era_speaks_to_every_other() {
    for client_era in [Era::Legacy, Era::Modern] {
        for server_era in [Era::Legacy, Era::Modern] {
            let case = format!("client {client_era:?}, server {server_era:?}");
            let shared = Arc::new(Shared::default());
            let host = Host::start(|_| router(server_era, &shared));
            let client = Client::default();
            let (service, front, _dir) = start(&host.url("/mcp"), client_era, &client).await;
            let info = service.peer().peer_info().unwrap();
            assert_eq!(info.server_info.as_ref().unwrap().name, "fixture", "{case}");
            assert_eq!(service.list_all_tools().await.unwrap().len(), 3, "{case}");
            let typed = service
                .call_tool(call_of("echo", serde_json::json!({"text": "hi"})))
                .await
                .unwrap();
            assert_eq!(
                typed.result_type.is_some(),
                client_era == Era::Modern,
                "{case}: {typed:?}"
            );
            let echo = call(&service, call_of("echo", serde_json::json!({"text": "hi"}))).await;
            assert!(echo.contains("hi"), "{case}: {echo}");
            call(
                &service,
                call_of("count", serde_json::json!({"to": 5, "pause_ms": 1})),
            )
            .await;
            let progress = || (client.progress.load(Ordering::SeqCst) == 5).then_some(());
            eventually(&case, progress).await;
            let unknown = service
                .call_tool(call_of("nonsense", serde_json::json!({})))
                .await
                .unwrap_err();
            assert!(
                unknown.to_string().contains("no tool nonsense"),
                "{case}: {unknown}"
            );
            let answer = call(&service, call_of("ask", serde_json::json!({}))).await;
            if (client_era, server_era) == (Era::Modern, Era::Legacy) {
                // A legacy server asks in the middle of a call, which a modern client cannot be.
                assert!(answer.contains("cannot be asked"), "{case}: {answer}");
            } else {
                assert!(answer.contains("blue"), "{case}: {answer}");
            }
            service.cancel().await.unwrap();
            tokio::time::timeout(test_support::PATIENCE, front)
                .await
                .unwrap()
                .unwrap()
                .unwrap();
        }
    }
}

#[tokio::test]
async fn changes_and_restarts_reach_the_client() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let address = host.address;
        let client = Client::default();
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &client).await;
        eventually("a listener", || shared.has_listener().then_some(())).await;
        shared.grow().await;
        eventually("the change", || {
            (client.tools_changed.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        assert_eq!(service.list_all_tools().await.unwrap().len(), 4);
        host.kill();
        let _next_life = Host::start_at(address, |_| router(server_era, &shared));
        // Calls may have gone out on connections that were dying; a client would say so and try again.
        let again = async {
            let call = || service.call_tool(call_of("echo", serde_json::json!({"text": "again"})));
            while call().await.is_err() {}
        };
        tokio::time::timeout(test_support::PATIENCE, again)
            .await
            .unwrap_or_else(|_| panic!("{server_era:?}: no call is answered"));
        service.cancel().await.unwrap();
        front.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn watched_resources_are_watched_again_after_a_restart() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let address = host.address;
        let client = Client::default();
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &client).await;
        service
            .subscribe(SubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
        let asked = || shared.subscriptions.load(Ordering::SeqCst);
        // A modern server hears of it after it has acknowledged it.
        eventually("the server to be asked", || (asked() == 1).then_some(())).await;
        host.kill();
        let life = Arc::new(Shared::default());
        let _next_life = Host::start_at(address, |_| router(server_era, &life));
        eventually("the server to be asked again", || {
            (life.subscriptions.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        eventually("a listener", || life.has_listener().then_some(())).await;
        life.touch("x:1").await;
        eventually("the update", || {
            (client.updates.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        service.cancel().await.unwrap();
        front.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_log_level_outlives_the_server_it_was_set_at() {
    for server_era in [Era::Legacy, Era::Modern] {
        let case = format!("the level at a server {server_era:?}");
        let host = Host::start(|_| router(server_era, &Arc::default()));
        let address = host.address;
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
        service
            .set_level(SetLevelRequestParams::new(LoggingLevel::Warning))
            .await
            .unwrap();
        host.kill();
        let life = Arc::new(Shared::default());
        let _next_life = Host::start_at(address, |_| router(server_era, &life));
        call_until(&service, &case, |answer| answer.is_ok()).await;
        eventually(&case, || {
            (*life.log_level.lock().unwrap() == Some(LoggingLevel::Warning)).then_some(())
        })
        .await;
        service.cancel().await.unwrap();
        front.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_resource_can_be_watched_while_the_server_is_away() {
    for server_era in [Era::Legacy, Era::Modern] {
        let host = Host::start(|_| router(server_era, &Arc::default()));
        let address = host.address;
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
        host.kill();
        // A request that was sent on the dying connection is lost; one that has to wait finds the server away.
        let echo = || service.call_tool(call_of("echo", serde_json::json!({})));
        while tokio::time::timeout(Duration::from_millis(200), echo())
            .await
            .is_ok()
        {}
        let watching = tokio::spawn({
            let peer = service.peer().clone();
            async move { while peer.subscribe(SubscribeRequestParams::new("x:1")).await.is_err() {} }
        });
        let life = Arc::new(Shared::default());
        let _next_life = Host::start_at(address, |_| router(server_era, &life));
        tokio::time::timeout(test_support::PATIENCE, watching)
            .await
            .unwrap()
            .unwrap();
        eventually("the server to hear of it", || {
            (life.subscriptions.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        service.cancel().await.unwrap();
        front.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_resource_that_is_watched_anew_is_watched_once() {
    let shared = Arc::new(Shared::default());
    let host = Host::start(|_| router(Era::Modern, &shared));
    let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
    for _ in 0..3 {
        service
            .subscribe(SubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
        service
            .unsubscribe(UnsubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
        service
            .subscribe(SubscribeRequestParams::new("x:1"))
            .await
            .unwrap();
    }
    eventually("the server to be asked each time", || {
        (shared.subscriptions.load(Ordering::SeqCst) == 6).then_some(())
    })
    .await;
    eventually("one subscription to be left", || {
        (shared.open_subscriptions.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    service.cancel().await.unwrap();
    front.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_subscription_that_ends_is_ended_at_the_server() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Modern, &Client::default()).await;
        let open = || shared.open_subscriptions.load(Ordering::SeqCst);
        let listen = |uris: &[&str]| {
            let uris: Vec<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
            service.listen(SubscriptionFilter::builder().resource_subscriptions(uris).build())
        };
        let both = listen(&["x:1", "x:2"]).await.unwrap();
        eventually("two resources to be watched", || (open() == 2).then_some(())).await;
        let mut one = listen(&["x:1"]).await.unwrap();
        eventually("one of them to be watched again", || {
            (shared.subscriptions.load(Ordering::SeqCst) == 3).then_some(())
        })
        .await;
        drop(both);
        // A legacy server was asked twice for the resource that is still watched.
        let left = if server_era == Era::Legacy { 2 } else { 1 };
        eventually("the other to be let go", || (open() == left).then_some(())).await;
        shared.touch("x:1").await;
        let update = tokio::time::timeout(test_support::PATIENCE, one.next()).await;
        assert!(
            matches!(
                update,
                Ok(Ok(Some(ServerNotification::ResourceUpdatedNotification(_))))
            ),
            "{server_era:?}: {update:?}"
        );
        drop(one);
        eventually("the last to be let go", || (open() == left - 1).then_some(())).await;
        service.cancel().await.unwrap();
        front.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_leaves_does_not_wait_for_a_silent_server() {
    let dir = tempfile::tempdir().unwrap();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = server("r", &format!("http://{}/mcp", silent.local_addr().unwrap()));
    let mut settings = settings(&dir);
    settings.connect_patience = Duration::from_secs(3600);
    let said = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;
    let (output, client) = tokio::io::duplex(1 << 16);
    let fronting = front(&said[..], output, &config, &settings, |_| ());
    tokio::time::timeout(test_support::PATIENCE, fronting)
        .await
        .expect("it ends with its client")
        .unwrap();
    let answers = answers(client).await;
    assert_eq!(answers.len(), 2, "{answers:?}");
    for (id, answer) in (1..).zip(answers) {
        let reason = "the remote server was not reached before the client left";
        assert_eq!(
            (&answer["id"], &answer["error"]["message"]),
            (&id.into(), &reason.into())
        );
    }
}

#[tokio::test]
async fn requests_that_wait_are_answered_when_the_client_leaves() {
    let host = Host::start(|_| router(Era::Legacy, &Arc::default()));
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&dir);
    settings.retry.max_retries = u32::MAX;
    let config = server("r", &host.url("/mcp"));
    let (mut say, input) = tokio::io::duplex(1 << 16);
    let (output, hear) = tokio::io::duplex(1 << 16);
    let fronting = tokio::spawn(async move { front(input, output, &config, &settings, |_| ()).await });
    let mut hear = BufReader::new(hear);
    let greeting = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
    say.write_all(greeting).await.unwrap();
    let mut welcome = String::new();
    hear.read_line(&mut welcome).await.unwrap();
    assert!(welcome.contains("fixture"), "{welcome}");
    host.kill();
    let last_words = br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"x:1"}}
{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"info"}}
"#;
    say.write_all(last_words).await.unwrap();
    drop(say);
    let answers = tokio::time::timeout(test_support::PATIENCE, answers(hear))
        .await
        .unwrap();
    for id in 2..=4 {
        let is_refused =
            |answer: &serde_json::Value| answer["id"] == id && answer["error"]["message"].is_string();
        assert!(answers.iter().any(is_refused), "{id}: {answers:?}");
    }
    fronting.await.unwrap().unwrap();
}

/// Everything a front says until it ends.
async fn answers(mut front: impl AsyncRead + Unpin) -> Vec<serde_json::Value> {
    let mut said = String::new();
    front.read_to_string(&mut said).await.unwrap();
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn a_cancelled_request_is_cancelled_at_the_server() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let (service, _front, _dir) = start(&host.url("/mcp"), Era::Legacy, &Client::default()).await;
        tokio::select! {
            _ = service.call_tool(call_of("slow", serde_json::json!({}))) => panic!("ended by itself"),
            () = eventually("the call", || (shared.calls.load(Ordering::SeqCst) == 1).then_some(())) => {}
        }
        eventually("the cancellation", || {
            shared.cancelled.load(Ordering::SeqCst).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_dead_server_is_an_error_and_a_silent_client_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let config = server(
        "r",
        &format!("http://127.0.0.1:{}/mcp", test_support::quiet_port()),
    );
    let (output, mut client) = tokio::io::duplex(1 << 16);
    let request = &br#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#[..];
    let error = front(request, output, &config, &settings(&dir), |_| ())
        .await
        .unwrap_err();
    assert!(
        matches!(error, FrontError::Connect(ConnectError::Failed { .. })),
        "{error:?}"
    );
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["id"], 7);
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("refused"),
        "{answer}"
    );
    front(&b""[..], tokio::io::sink(), &config, &settings(&dir), |_| ())
        .await
        .unwrap();
}

/// Calls until the answer is the wanted one.
async fn call_until(
    service: &RunningService<RoleClient, Client>,
    what: &str,
    wanted: impl Fn(Result<(), String>) -> bool,
) {
    let asking = async {
        let echo = || service.call_tool(call_of("echo", serde_json::json!({})));
        while !wanted(echo().await.map(drop).map_err(|error| error.to_string())) {}
    };
    let waited = tokio::time::timeout(test_support::PATIENCE, asking).await;
    waited.unwrap_or_else(|_| panic!("gave up waiting for {what}"));
}

#[tokio::test]
async fn a_front_outlives_its_server_and_says_what_is_the_matter() {
    for server_era in [Era::Legacy, Era::Modern] {
        let host = Host::start(|_| router(server_era, &Arc::default()));
        let address = host.address;
        let dir = tempfile::tempdir().unwrap();
        let mut settings = settings(&dir);
        settings.retry.max_retries = 1;
        let config = server("r", &host.url("/mcp"));
        let (service, front) = start_with(config, settings, Era::Legacy, &Client::default(), |_| ()).await;
        host.kill();
        call_until(&service, "the reason", |answer| {
            answer.is_err_and(|error| error.contains("is not available: cannot connect to server `r`"))
        })
        .await;
        assert!(!front.is_finished());
        let _next_life = Host::start_at(address, |_| router(server_era, &Arc::default()));
        call_until(&service, "the next life", |answer| answer.is_ok()).await;
        service.cancel().await.unwrap();
        front.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_login_that_is_revoked_is_asked_for_again_and_may_be_made_elsewhere() {
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let settings = ClientSettings {
        login: LoginMode::Link,
        ..settings(&dir)
    };
    let tokens = settings.tokens.clone();
    log_in(&endpoint(&auth), &tokens).await.0.unwrap();
    let (links, mut shown) = tokio::sync::mpsc::unbounded_channel();
    let tell = move |news: FrontNews<'_>| {
        if let FrontNews::LoginRequired(link) = news {
            links.send(link.clone()).unwrap();
        }
    };
    let config = server("r", &auth.url());
    let (service, front) = start_with(config, settings, Era::Legacy, &Client::default(), tell).await;
    call_until(&service, "an answer", |answer| answer.is_ok()).await;

    auth.ledger.lock().unwrap().revoke_all();
    call_until(&service, "the link", |answer| {
        answer.is_err_and(|error| error.contains("wants a login: open http://"))
    })
    .await;
    assert_eq!(browse(shown.recv().await.unwrap()).await.unwrap().0, 200);
    call_until(&service, "the new login", |answer| answer.is_ok()).await;

    auth.ledger.lock().unwrap().revoke_all();
    logout(&endpoint(&auth), &tokens).await.unwrap();
    call_until(&service, "the next link", |answer| answer.is_err()).await;
    shown.recv().await.unwrap();
    log_in(&endpoint(&auth), &tokens).await.0.unwrap();
    call_until(&service, "the login elsewhere", |answer| answer.is_ok()).await;
    service.cancel().await.unwrap();
    front.await.unwrap().unwrap();
}

/// Of the modern era; says nothing to whoever subscribes, and ends when it is told to.
const UNACKNOWLEDGING: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$1"; }
  case "$line" in
    *'"server/discover"'*) answer '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"';;
    *'"tools/call"'*'"die"'*) exit 3;;
    *'"tools/call"'*) answer '"content":[]';;
  esac
done
"#;

#[tokio::test]
async fn a_server_that_acknowledges_no_subscription_is_missed_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let config = program("sh", UNACKNOWLEDGING, dir.path());
    let (service, front) = start_with(config, settings(&dir), Era::Legacy, &Client::default(), |_| ()).await;
    call_until(&service, "an answer", |answer| answer.is_ok()).await;
    let lost = service.call_tool(call_of("die", serde_json::json!({}))).await;
    let lost = lost.unwrap_err().to_string();
    assert!(lost.contains("may or may not have run"), "{lost}");
    call_until(&service, "the next life", |answer| answer.is_ok()).await;
    service.cancel().await.unwrap();
    front.await.unwrap().unwrap();
}
