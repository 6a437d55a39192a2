//! Mounted servers: their tools, calls, progress, cancellation, and that a bad one does not disturb others.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ahma_http_mcp_client::{LoginCommand, RemoteError, RemoteServers, ServerState, inspect};
use axum::{extract::Request, http::StatusCode, middleware::Next, response::IntoResponse};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    call_arrived, eventually, has_grown,
    host::Host,
    ready, server, settings, tool_names,
    tools::{Era, Shared, router},
    until,
};

pub(crate) fn call_of(tool: &'static str, arguments: serde_json::Value) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = arguments.as_object().cloned();
    params
}

pub(crate) fn text_of(response: CallToolResponse) -> CallToolResult {
    match response {
        CallToolResponse::Complete(result) => result,
        other => panic!("not complete: {other:?}"),
    }
}

#[tokio::test]
async fn tools_calls_and_progress_pass_through_in_both_eras() {
    for (era, protocol) in [(Era::Legacy, "2025-11-25"), (Era::Modern, "2026-07-28")] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(era, &shared));
        let dir = tempfile::tempdir().unwrap();
        let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings(&dir));
        let state = ready(&servers, "r").await;
        assert_eq!(tool_names(&state), ["count", "echo", "slow"]);
        let ServerState::Ready { report, .. } = state else {
            unreachable!()
        };
        assert_eq!(report.protocol, protocol);

        let never = CancellationToken::new();
        let echo = servers
            .call(
                "r",
                call_of("echo", serde_json::json!({"text": "hi"})),
                None,
                &never,
            )
            .await
            .unwrap();
        assert_eq!(
            text_of(echo).structured_content,
            Some(serde_json::json!({"text": "hi"}))
        );

        let (sink, mut progress) = mpsc::channel(64);
        let count = call_of("count", serde_json::json!({"to": 20, "pause_ms": 1}));
        servers.call("r", count, Some(sink), &never).await.unwrap();
        let mut seen = Vec::new();
        while let Ok(step) = progress.try_recv() {
            seen.push(step.progress);
        }
        assert_eq!(seen, (1..=20).map(f64::from).collect::<Vec<_>>(), "{era:?}");

        let unknown = servers
            .call("r", call_of("nonsense", serde_json::json!({})), None, &never)
            .await
            .unwrap_err();
        assert!(
            matches!(&unknown, RemoteError::Protocol(error) if error.message == "no tool nonsense"),
            "{unknown:?}"
        );
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_cancelled_or_dropped_call_ends_at_the_server() {
    for era in [Era::Legacy, Era::Modern] {
        for dropped in [false, true] {
            let shared = Arc::new(Shared::default());
            let host = Host::start(|_| router(era, &shared));
            let dir = tempfile::tempdir().unwrap();
            let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings(&dir));
            ready(&servers, "r").await;
            let cancel = CancellationToken::new();
            let calling = servers.call("r", call_of("slow", serde_json::json!({})), None, &cancel);
            let reached = call_arrived(&shared);
            if dropped {
                tokio::select! {
                    _ = calling => panic!("the call ended by itself"),
                    () = reached => {}
                }
            } else {
                let stop = async {
                    reached.await;
                    cancel.cancel();
                };
                let (result, ()) = tokio::join!(calling, stop);
                assert!(matches!(result, Err(RemoteError::Cancelled)), "{result:?}");
            }
            eventually(&format!("{era:?}: the server to stop working"), || {
                shared.cancelled.load(Ordering::SeqCst).then_some(())
            })
            .await;
            servers.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_change_of_the_tools_is_noticed_in_both_eras() {
    for era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(era, &shared));
        let dir = tempfile::tempdir().unwrap();
        let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings(&dir));
        ready(&servers, "r").await;
        eventually("a listener", || shared.has_listener().then_some(())).await;
        shared.grow().await;
        until(&servers, "r", "the new tool", has_grown).await;
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_dead_and_a_silent_server_delay_no_other() {
    let shared = Arc::new(Shared::default());
    let host = Host::start(|_| router(Era::Modern, &shared));
    // Accepts connections and never says a word.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = test_support::quiet_port();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&dir);
    settings.retry.max_retries = 1;
    let servers = RemoteServers::start(
        vec![
            server("dead", &format!("http://127.0.0.1:{dead}/mcp")),
            server("good", &host.url("/mcp")),
            server("silent", &format!("http://{}/mcp", silent.local_addr().unwrap())),
        ],
        settings,
    );
    ready(&servers, "good").await;
    assert!(matches!(
        servers.states().borrow()["silent"],
        ServerState::Connecting { .. }
    ));
    let failed = until(&servers, "dead", "failed", |state| {
        matches!(state, ServerState::Failed { .. })
    })
    .await;
    let ServerState::Failed { reason } = failed else {
        unreachable!()
    };
    assert!(
        reason.contains("cannot connect to server `dead`: Streamable HTTP:")
            && reason.contains("Connection refused"),
        "{reason}"
    );
    let never = CancellationToken::new();
    let error = servers
        .call("dead", call_of("echo", serde_json::json!({})), None, &never)
        .await
        .unwrap_err();
    assert!(matches!(error, RemoteError::Unavailable { .. }), "{error:?}");
    let error = servers
        .call("unknown", call_of("echo", serde_json::json!({})), None, &never)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no remote server `unknown`");
    servers
        .call("good", call_of("echo", serde_json::json!({})), None, &never)
        .await
        .unwrap();
}

/// A server that refuses everything while `closed`.
fn moody(shared: &Arc<Shared>, closed: &Arc<AtomicBool>) -> Host {
    let closed = Arc::clone(closed);
    let refuse = axum::middleware::from_fn(move |request: Request, next: Next| {
        let closed = closed.load(Ordering::SeqCst);
        async move {
            match closed {
                true => (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]).into_response(),
                false => next.run(request).await,
            }
        }
    });
    Host::start(|_| router(Era::Modern, shared).layer(refuse))
}

#[tokio::test]
async fn a_server_that_refuses_the_users_own_credentials_is_not_given_up() {
    let closed = Arc::new(AtomicBool::new(true));
    let host = moody(&Arc::default(), &closed);
    let dir = tempfile::tempdir().unwrap();
    let mut config = server("r", &host.url("/mcp"));
    let mut credential = http::HeaderValue::from_static("Bearer mine");
    credential.set_sensitive(true);
    let endpoint = config.http.as_mut().unwrap();
    endpoint.headers.push((http::header::AUTHORIZATION, credential));
    let mut settings = settings(&dir);
    settings.retry.max_retries = 0;
    let servers = RemoteServers::start(vec![config], settings);
    let failed = until(&servers, "r", "the refusal", |state| {
        matches!(state, ServerState::Failed { .. })
    })
    .await;
    let ServerState::Failed { reason } = failed else {
        unreachable!()
    };
    assert!(
        reason.contains("rejects the configured `Authorization` header"),
        "{reason}"
    );

    // A call brings it back as soon as the server has changed its mind.
    closed.store(false, Ordering::SeqCst);
    let never = CancellationToken::new();
    let echo = || {
        servers.call(
            "r",
            call_of("echo", serde_json::json!({"text": "hi"})),
            None,
            &never,
        )
    };
    echo().await.unwrap();

    // One refusal is that call's alone.
    closed.store(true, Ordering::SeqCst);
    let refused = echo().await.unwrap_err();
    assert!(matches!(refused, RemoteError::Refused { .. }), "{refused:?}");
    closed.store(false, Ordering::SeqCst);
    assert!(matches!(
        servers.states().borrow().get("r"),
        Some(ServerState::Ready { .. })
    ));
    echo().await.unwrap();
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_wants_a_login_no_more_is_used_without_one() {
    let closed = Arc::new(AtomicBool::new(true));
    let host = moody(&Arc::default(), &closed);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&dir);
    settings.login_command = LoginCommand::default().with("--mcp-config", "/my files/mcp.json");
    let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings);
    until(&servers, "r", "the request to log in", |state| {
        matches!(state, ServerState::LoginRequired { .. })
    })
    .await;
    let never = CancellationToken::new();
    let echo = || servers.call("r", call_of("echo", serde_json::json!({})), None, &never);
    assert_eq!(
        echo().await.unwrap_err().to_string(),
        "remote server `r` requires a login: run `ahma_mcp login r --mcp-config '/my files/mcp.json'`"
    );
    closed.store(false, Ordering::SeqCst);
    echo().await.unwrap();
    servers.shutdown().await;
}

#[tokio::test]
async fn answers_that_are_no_results_are_told_from_lost_calls() {
    let status = Arc::new(std::sync::Mutex::new(StatusCode::OK));
    let answer = Arc::clone(&status);
    let instead = axum::middleware::from_fn(move |request: Request, next: Next| {
        let status = *answer.lock().unwrap();
        async move {
            match status {
                StatusCode::OK => next.run(request).await,
                status => (
                    status,
                    [("retry-after", "30"), ("location", "https://new.example/mcp")],
                )
                    .into_response(),
            }
        }
    });
    let host = Host::start(|_| router(Era::Modern, &Arc::default()).layer(instead));
    let dir = tempfile::tempdir().unwrap();
    let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings(&dir));
    ready(&servers, "r").await;
    let never = CancellationToken::new();
    for (instead, expected) in [
        (
            StatusCode::TOO_MANY_REQUESTS,
            "remote server `r` refused the request: HTTP 429 Too Many Requests (Retry-After: 30)",
        ),
        (
            StatusCode::PAYLOAD_TOO_LARGE,
            "remote server `r` refused the request: HTTP 413 Payload Too Large:",
        ),
        (
            StatusCode::TEMPORARY_REDIRECT,
            "remote server `r` refused the request: the server has moved to https://new.example/mcp; \
             replace the configured address",
        ),
        (
            StatusCode::BAD_GATEWAY,
            "remote server `r` failed during the request, which may or may not have run: HTTP 502 Bad Gateway \
             (Retry-After: 30)",
        ),
    ] {
        *status.lock().unwrap() = instead;
        let error = servers
            .call("r", call_of("echo", serde_json::json!({})), None, &never)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn a_key_in_the_address_is_not_told() {
    let rude = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = rude.local_addr().unwrap();
    // Connections are taken and dropped, so that requests fail on the way and not at the door.
    tokio::spawn(async move { while rude.accept().await.is_ok() {} });
    let moved = format!("http://{address}/mcp?key=s3cret");
    let host = Host::start(move |_| {
        let away = move || async move { axum::response::Redirect::temporary(&moved) };
        axum::Router::new().route("/mcp", axum::routing::any(away))
    });
    let dir = tempfile::tempdir().unwrap();
    for url in [
        format!("http://user:s3cret@{address}/mcp?key=s3cret"),
        host.url("/mcp?key=s3cret"),
    ] {
        let error = inspect(&server("r", &url), &settings(&dir)).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
