//! Servers that die and come back, and wires that are cut.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ahma_http_mcp_client::{RemoteError, RemoteServers, ServerState};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{
        call_arrived, eventually, has_grown,
        host::Host,
        proxy::Wire,
        ready, server, settings,
        tools::{Era, Shared, router},
        until,
    },
    remote::{call_of, text_of},
};

#[tokio::test]
async fn a_restarted_server_brings_its_tools_back() {
    for era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(era, &shared));
        let address = host.address;
        let dir = tempfile::tempdir().unwrap();
        let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings(&dir));
        ready(&servers, "r").await;
        eventually("a listener", || shared.has_listener().then_some(())).await;
        host.kill();
        shared.extra_tool.store(true, Ordering::SeqCst);
        let _next_life = Host::start_at(address, |_| router(era, &shared));
        until(&servers, "r", "the tools of the next life", has_grown).await;
        let never = CancellationToken::new();
        let echo = servers
            .call(
                "r",
                call_of("echo", serde_json::json!({"text": "again"})),
                None,
                &never,
            )
            .await;
        assert_eq!(
            text_of(echo.unwrap()).structured_content,
            Some(serde_json::json!({"text": "again"}))
        );
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_announces_nothing_is_watched_all_the_same() {
    for era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        shared.announces_nothing.store(true, Ordering::SeqCst);
        let host = Host::start(|_| router(era, &shared));
        let address = host.address;
        let dir = tempfile::tempdir().unwrap();
        let mut settings = settings(&dir);
        settings.retry.max_retries = 1;
        settings.relist_every = Duration::from_millis(50);
        let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings);
        ready(&servers, "r").await;
        shared.extra_tool.store(true, Ordering::SeqCst);
        until(&servers, "r", "the new tool", has_grown).await;
        host.kill();
        let failed = |state: &ServerState| matches!(state, ServerState::Failed { .. });
        until(&servers, "r", "the death to be noticed", failed).await;
        let _next_life = Host::start_at(address, |_| router(era, &shared));
        let never = CancellationToken::new();
        let echo = servers.call("r", call_of("echo", serde_json::json!({})), None, &never);
        echo.await.unwrap();
        servers.shutdown().await;
    }
}

/// Tools are not listed periodically here: the call that had to wait is reason enough.
#[tokio::test]
async fn a_call_that_had_to_wait_renews_the_tools() {
    let shared = Arc::new(Shared::default());
    shared.announces_nothing.store(true, Ordering::SeqCst);
    let host = Host::start(|_| router(Era::Modern, &shared));
    let address = host.address;
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&dir);
    settings.relist_every = Duration::from_secs(3600);
    let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings);
    ready(&servers, "r").await;
    host.kill();
    shared.extra_tool.store(true, Ordering::SeqCst);
    let never = CancellationToken::new();
    let echo = || servers.call("r", call_of("echo", serde_json::json!({})), None, &never);
    // One that was sent on the dying connection is lost; one that has to wait finds the server away.
    while tokio::time::timeout(Duration::from_millis(200), echo())
        .await
        .is_ok()
    {}
    let _next_life = Host::start_at(address, |_| router(Era::Modern, &shared));
    while echo().await.is_err() {}
    until(&servers, "r", "the tools of the next life", has_grown).await;
    servers.shutdown().await;
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_restarts() {
    for era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(era, &shared));
        let address = host.address;
        let dir = tempfile::tempdir().unwrap();
        let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings(&dir));
        ready(&servers, "r").await;
        host.kill();
        let never = CancellationToken::new();
        let late = || {
            servers.call(
                "r",
                call_of("echo", serde_json::json!({"text": "late"})),
                None,
                &never,
            )
        };
        // One that was sent on the dying connection is lost, and not repeated for us; one that has to wait finds the
        // server away.
        let waiting = loop {
            let mut call = Box::pin(late());
            match tokio::time::timeout(Duration::from_millis(200), &mut call).await {
                Err(_) => break call,
                Ok(Err(RemoteError::Lost { .. })) => {}
                Ok(answer) => panic!("{era:?}: a dead server answered {answer:?}"),
            }
        };
        let _next_life = tokio::task::spawn_blocking({
            let shared = Arc::clone(&shared);
            move || Host::start_at(address, |_| router(era, &shared))
        })
        .await
        .unwrap();
        assert_eq!(
            text_of(waiting.await.unwrap()).structured_content,
            Some(serde_json::json!({"text": "late"}))
        );
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_call_whose_server_dies_is_reported_as_lost_and_not_repeated() {
    for era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(era, &shared));
        let address = host.address;
        let dir = tempfile::tempdir().unwrap();
        let servers = RemoteServers::start(vec![server("r", &host.url("/mcp"))], settings(&dir));
        ready(&servers, "r").await;
        let never = CancellationToken::new();
        let call = servers.call("r", call_of("slow", serde_json::json!({})), None, &never);
        let accident = async {
            call_arrived(&shared).await;
            host.kill();
            tokio::task::spawn_blocking({
                let shared = Arc::clone(&shared);
                move || Host::start_at(address, |_| router(era, &shared))
            })
            .await
            .unwrap()
        };
        let (answer, _next_life) =
            tokio::time::timeout(test_support::TEST_TIMEOUT, async { tokio::join!(call, accident) })
                .await
                .unwrap();
        assert!(
            matches!(&answer, Err(RemoteError::Lost { .. })),
            "{era:?}: {answer:?}"
        );
        assert_eq!(
            shared.calls.load(Ordering::SeqCst),
            1,
            "{era:?}: the call was sent twice"
        );
        ready(&servers, "r").await;
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_cut_wire_loses_and_doubles_nothing_where_the_protocol_can_resume() {
    let shared = Arc::new(Shared::default());
    let host = Host::start(|_| router(Era::Legacy, &shared));
    let wire = Wire::to(host.address).await;
    let dir = tempfile::tempdir().unwrap();
    let servers = RemoteServers::start(
        vec![server("r", &format!("http://{}/mcp", wire.address))],
        settings(&dir),
    );
    ready(&servers, "r").await;
    let (sink, mut progress) = mpsc::channel(1024);
    let never = CancellationToken::new();
    // Long enough to be still running when the last retry comes: this server forgets a finished call.
    let call = servers.call(
        "r",
        call_of("count", serde_json::json!({"to": 300, "pause_ms": 20})),
        Some(sink),
        &never,
    );
    let trouble = async {
        let mut seen = Vec::new();
        while let Some(step) = progress.recv().await {
            seen.push(step.progress);
            if seen.len() == 10 {
                wire.cut();
                eventually("a retry on the cut wire", || (wire.refused() > 0).then_some(())).await;
                wire.mend();
            }
        }
        seen
    };
    let (answer, seen) =
        tokio::time::timeout(test_support::TEST_TIMEOUT, async { tokio::join!(call, trouble) })
            .await
            .unwrap();
    answer.unwrap();
    assert_eq!(seen, (1..=300).map(f64::from).collect::<Vec<_>>());
    assert_eq!(shared.calls.load(Ordering::SeqCst), 1);
    servers.shutdown().await;
}
