//! Clients that are slow, rude or gone do not disturb others.

use std::time::Duration;

use ahma_http_bridge::{AuthSettings, Secret, TokenSource};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{Bridge, BridgeProcess, Client, TEST_TIMEOUT, eventually};

async fn raw(bridge: &Bridge, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(bridge.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

async fn answer_of(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut answer))
        .await
        .expect("the connection to end");
    // A reset after the answer is an end too.
    drop(read);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_slow_head_or_body_is_not_waited_for() {
    let bridge = Bridge::start(&[], |settings| {
        settings.times.head = Duration::from_millis(200);
        settings.times.body = Duration::from_millis(200);
    })
    .await;
    let head = raw(&bridge, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n").await;
    answer_of(head).await;
    answer_of(raw(&bridge, "").await).await;
    answer_of(raw(&bridge, "P").await).await;
    let request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let body = answer_of(raw(&bridge, request).await).await;
    assert!(body.starts_with("HTTP/1.1 408"), "{body}");
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_connection() {
    let bridge = Bridge::start(&[], |settings| {
        settings.auth = AuthSettings::Token(TokenSource::Single(Secret::new("t")));
        settings.times.write = Duration::from_millis(300);
    })
    .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(bridge.address).await.unwrap();
    let requests = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let asking = async { while stream.write_all(requests.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(TEST_TIMEOUT, asking)
        .await
        .expect("the connection to end");
    bridge.stop().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_request() {
    let bridge = Bridge::shared().await;
    let request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let mut stream = raw(&bridge, request).await;
    stream.shutdown().await.unwrap();
    answer_of(stream).await;
    assert_eq!(
        bridge.session().await.call("echo", json!({ "text": "ok" })).await,
        "ok"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_head_over_the_bound_is_refused() {
    let bridge = Bridge::start(&[], |settings| settings.limits.head_bytes = 8 << 10).await;
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(64 << 10)
    );
    let answer = answer_of(raw(&bridge, &request).await).await;
    assert!(
        answer.starts_with("HTTP/1.1 431") || answer.is_empty(),
        "{answer}"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_that_never_reads_its_stream_costs_a_bound() {
    let bridge = BridgeProcess::start(&[], &["--session-isolation"]);
    let mut client = bridge.client();
    client.initialize(json!({})).await;
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {}\r\n\r\n",
        client.session.as_deref().unwrap()
    );
    let mut never_read = TcpStream::connect(bridge.address()).await.unwrap();
    never_read.write_all(request.as_bytes()).await.unwrap();
    let before = bridge.memory_bytes();
    // About 30 MB of log lines, sent to a client that does not read.
    for _ in 0..10 {
        assert_eq!(client.call("flood", json!({ "count": 30_000 })).await, "flooded");
    }
    let grown = bridge.memory_bytes().saturating_sub(before);
    assert!(grown < 12 << 20, "memory grew by {grown} bytes");
    bridge.stop();
}

#[tokio::test]
async fn a_thousand_idle_connections_do_not_matter() {
    let bridge = BridgeProcess::start(&[], &[]);
    let mut client = bridge.client();
    client.initialize(json!({})).await;
    let before = bridge.memory_bytes();
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(TcpStream::connect(bridge.address()).await.unwrap());
    }
    for number in 0..50 {
        let text = number.to_string();
        assert_eq!(client.call("echo", json!({ "text": text })).await, text);
    }
    let grown = bridge.memory_bytes().saturating_sub(before);
    assert!(grown < 48 << 20, "memory grew by {grown} bytes");
    drop(idle);
    bridge.stop();
}

#[tokio::test]
async fn connections_over_the_bound_are_closed_and_places_are_given_back() {
    let bridge = Bridge::start(&[], |settings| settings.limits.connections = 3).await;
    let held = [
        raw(&bridge, "G").await,
        raw(&bridge, "G").await,
        raw(&bridge, "G").await,
    ];
    eventually("a refused connection", async || {
        let stream = raw(
            &bridge,
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        )
        .await;
        answer_of(stream).await.is_empty()
    })
    .await;
    drop(held);
    eventually("a place", async || {
        let stream = raw(
            &bridge,
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        )
        .await;
        answer_of(stream).await.starts_with("HTTP/1.1 200")
    })
    .await;
    bridge.stop().await;
}

#[tokio::test]
async fn a_session_may_have_only_so_many_open_requests() {
    let bridge = Bridge::start(&[], |settings| settings.limits.calls_per_session = 4).await;
    let (client, other) = (bridge.session().await, bridge.session().await);
    let waiting: Vec<_> = (0..4)
        .map(|id| {
            let client = client.clone();
            // The probe below takes a place too, for a moment.
            tokio::spawn(
                async move { while client.try_call(json!(id), "silent", json!({})).await.0 == 503 {} },
            )
        })
        .collect();
    eventually("the fifth to be refused", async || {
        client.try_call(json!(9), "echo", json!({ "text": "" })).await.0 == 503
    })
    .await;
    assert_eq!(other.call("echo", json!({ "text": "free" })).await, "free");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    bridge.stop().await;
}

#[tokio::test]
async fn idle_connections_leave_room_for_sessions() {
    // A limit that can be raised, which children shall not notice, and one that cannot.
    for ulimit in ["-Sn 100", "-n 100"] {
        let bridge = BridgeProcess::start_limited(ulimit, &["--session-isolation"]);
        let mut client = bridge.client();
        client.initialize(json!({})).await;
        let pid = client.who().await.pid;
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let files = limits.lines().find(|line| line.starts_with("Max open files"));
        let found = files.and_then(|line| line.split_whitespace().nth(3));
        assert_eq!(found, Some("100"), "{ulimit}");
        let mut idle = Vec::new();
        for _ in 0..200 {
            idle.push(TcpStream::connect(bridge.address()).await.unwrap());
        }
        for _ in 0..3 {
            let mut another = Client {
                session: None,
                ..client.clone()
            };
            another.initialize(json!({})).await;
            assert_eq!(another.call("echo", json!({ "text": "in" })).await, "in");
        }
        drop(idle);
        bridge.stop();
    }
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_is_still_sending() {
    let bridge = Bridge::start(&[], |settings| {
        settings.auth = AuthSettings::Token(TokenSource::Single(Secret::new("t")));
        settings.limits.body_bytes = 1 << 20;
    })
    .await;
    let body = "x".repeat(3 << 20);
    for (key, status) in [("wrong", " 401 "), ("t", " 413 ")] {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-api-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        // Nothing is read before all is written, and no write may fail.
        let stream = raw(&bridge, &format!("{head}{body}")).await;
        let answer = answer_of(stream).await;
        assert!(answer.contains(status), "{answer}");
    }
    bridge.stop().await;
}

#[tokio::test]
async fn asking_for_a_head_takes_no_stream_over() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let mut events = client.events(None).await;
    for path in ["/mcp", "/mcp/sse"] {
        let head = client
            .http
            .head(bridge.url(path))
            .header("accept", "text/event-stream")
            .header("mcp-session-id", client.session.as_deref().unwrap())
            .send()
            .await
            .unwrap();
        assert_eq!(head.status().as_u16(), 405, "{path}");
    }
    client.call("list_changed", json!({})).await;
    assert_eq!(
        events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}
