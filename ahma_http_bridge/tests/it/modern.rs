//! The revision without sessions, 2026-07-28.

use std::path::PathBuf;
use std::time::Duration;

use ahma_http_bridge::Isolation;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::auth::{Tokens, bearing};
use crate::harness::{BOTH, Bridge, Client, Events, JSON, eventually, initialize, is_alive, tool_call};

const VERSION: &str = "2026-07-28";

fn request(id: Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn call(id: Value, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

async fn send(client: &Client, accept: &str, headers: &[(&str, &str)], message: &Value) -> Response {
    let mut request = client
        .http
        .post(&client.url)
        .header("accept", accept)
        .header("content-type", JSON)
        .body(message.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// Sends with the headers that belong to the message.
async fn post(client: &Client, accept: &str, message: &Value) -> Response {
    let method = message["method"].as_str().unwrap();
    let mut headers = vec![("mcp-protocol-version", VERSION), ("mcp-method", method)];
    if let Some(name) = message["params"]["name"].as_str() {
        headers.push(("mcp-name", name));
    }
    send(client, accept, &headers, message).await
}

#[tokio::test]
async fn a_client_cut_off_by_a_shutdown_is_told_to_come_again() {
    for isolation in [Isolation::Shared, Isolation::PerSession] {
        let bridge = Bridge::start(&[], |settings| {
            settings.isolation = isolation;
            settings.times.drain = Duration::ZERO;
        })
        .await;
        let client = bridge.client();
        let silent = call(json!(1), "silent", json!({}));
        let waiting = tokio::spawn(async move { post(&client, JSON, &silent).await });
        bridge.wait_for_open_calls(1).await;
        bridge.stop().await;
        let answer = waiting.await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{isolation:?}");
        assert_eq!(answer.headers()["retry-after"], "1");
    }
}

#[tokio::test]
async fn requests_need_no_session_in_either_mode() {
    for bridge in [Bridge::shared().await, Bridge::isolated().await] {
        let client = bridge.client();
        let discovered: Value = post(&client, BOTH, &request(json!(1), "server/discover", json!({})))
            .await
            .text()
            .await
            .map(first_event)
            .unwrap();
        assert_eq!(discovered["result"]["supportedVersions"][0], VERSION);
        let response = post(&client, JSON, &call(json!("x"), "echo", json!({ "text": "hi" }))).await;
        assert!(!response.headers().contains_key("mcp-session-id"));
        let answer: Value = response.json().await.unwrap();
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!("x"), &json!("hi"))
        );
        for method in ["no/such", "initialize", "ping"] {
            let unknown = post(&client, BOTH, &request(json!(2), method, json!({}))).await;
            assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
            let error: Value = unknown.json().await.unwrap();
            assert_eq!(
                (&error["id"], &error["error"]["code"]),
                (&json!(2), &json!(-32601))
            );
        }
        bridge.stop().await;
    }
}

fn first_event(text: String) -> Value {
    let data = text
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(data).unwrap()
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let bridge = Bridge::shared().await;
    let client = bridge.client();
    let message = call(json!(3), "echo", json!({ "text": "x" }));
    let version = ("mcp-protocol-version", VERSION);
    let method = ("mcp-method", "tools/call");
    let table: [(&[(&str, &str)], i64); 9] = [
        (&[version, method, ("mcp-name", "echo")], 0),
        (&[version, method, ("mcp-name", "=?base64?ZWNobw==?=")], 0),
        (&[version, ("mcp-name", "echo")], -32020),
        (&[version, method], -32020),
        (
            &[version, ("mcp-method", "tools/list"), ("mcp-name", "echo")],
            -32020,
        ),
        (&[version, method, ("mcp-name", "other")], -32020),
        (
            &[version, method, ("mcp-name", "echo"), ("mcp-name", "other")],
            -32020,
        ),
        (&[method, ("mcp-name", "echo")], -32020),
        (
            &[
                ("mcp-protocol-version", "2027-01-01"),
                method,
                ("mcp-name", "echo"),
            ],
            -32020,
        ),
    ];
    for (headers, code) in table {
        let response = send(&client, JSON, headers, &message).await;
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        assert_eq!(
            body["error"]["code"].as_i64().unwrap_or(0),
            code,
            "{headers:?}: {body}"
        );
        assert_eq!(
            status,
            if code == 0 {
                StatusCode::OK
            } else {
                StatusCode::BAD_REQUEST
            }
        );
        assert_eq!(body["id"], 3);
    }
    let mut bare = message.clone();
    bare["params"]["_meta"] = json!({});
    let response = send(&client, JSON, &[version, method, ("mcp-name", "echo")], &bare).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], -32602);
    bridge.stop().await;
}

#[tokio::test]
async fn there_is_no_stream_and_no_session_to_end() {
    let bridge = Bridge::shared().await;
    let client = bridge.client();
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let response = client
            .http
            .request(method, &client.url)
            .header("mcp-protocol-version", VERSION)
            .header("accept", "text/event-stream")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()["allow"], "POST");
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_subscription_is_a_stream_under_the_clients_own_id() {
    let bridge = Bridge::shared().await;
    let client = bridge.client();
    let listen = request(
        json!("mine"),
        "subscriptions/listen",
        json!({ "notifications": {} }),
    );
    let mut events = Events::of(post(&client, BOTH, &listen).await);
    let key = "io.modelcontextprotocol/subscriptionId";
    let acknowledged = events.next_json().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"][key], "mine");
    post(&client, JSON, &call(json!(1), "list_changed", json!({}))).await;
    let changed = events.next_json().await;
    assert_eq!(changed["params"]["_meta"][key], "mine");
    assert_eq!(
        post(&client, JSON, &listen).await.status(),
        StatusCode::NOT_ACCEPTABLE
    );
    drop(events);
    eventually("the child to hear that the subscription is over", async || {
        let answer: Value = post(&client, JSON, &call(json!(1), "cancelled", json!({})))
            .await
            .json()
            .await
            .unwrap();
        answer["result"]["content"][0]["text"] != "[]"
    })
    .await;
    bridge.stop().await;
}

#[tokio::test]
async fn closing_the_connection_cancels_the_request() {
    let bridge = Bridge::shared().await;
    let client = bridge.client();
    for accept in [JSON, BOTH] {
        let silent = call(json!(1), "silent", json!({}));
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { post(&client, accept, &silent).await.status() }
        });
        let before = cancelled(&client).await;
        bridge.wait_for_open_calls(1).await;
        waiting.abort();
        eventually("the cancel to reach the child", async || {
            cancelled(&client).await > before
        })
        .await;
    }
    bridge.stop().await;
}

async fn cancelled(client: &Client) -> usize {
    let answer: Value = post(client, JSON, &call(json!(1), "cancelled", json!({})))
        .await
        .json()
        .await
        .unwrap();
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    serde_json::from_str::<Vec<Value>>(&text).unwrap().len()
}

#[tokio::test]
async fn with_isolation_clients_without_a_session_share_the_default_scope() {
    let bridge = Bridge::isolated().await;
    let answer: Value = post(&bridge.client(), JSON, &call(json!(1), "who", json!({})))
        .await
        .json()
        .await
        .unwrap();
    let who: Value = serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        who["scope"],
        bridge.scope.path().canonicalize().unwrap().to_str().unwrap()
    );
    bridge.stop().await;
}

#[tokio::test]
async fn what_it_causes_reaches_no_session() {
    let bridge = Bridge::shared().await;
    let session = bridge.session().await;
    let mut events = session.events(None).await;
    let client = bridge.client();
    let logged = post(
        &client,
        JSON,
        &call(json!(1), "log", json!({ "text": "mine alone" })),
    )
    .await;
    assert_eq!(logged.status(), StatusCode::OK);
    let mut late = call(json!(2), "late_progress", json!({}));
    late["params"]["_meta"]["progressToken"] = json!(9);
    assert_eq!(post(&client, JSON, &late).await.status(), StatusCode::OK);
    session.call("list_changed", json!({})).await;
    assert_eq!(
        events.next_json().await["method"],
        "notifications/tools/list_changed"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_without_a_session_may_have_only_so_many_open_requests() {
    let bridge = Bridge::start(&[], |settings| settings.limits.calls_per_session = 2).await;
    let client = bridge.client();
    let waiting: Vec<_> = (0..2)
        .map(|id| {
            let client = client.clone();
            tokio::spawn(async move { post(&client, JSON, &call(json!(id), "silent", json!({}))).await })
        })
        .collect();
    bridge.wait_for_open_calls(2).await;
    for accept in [JSON, BOTH] {
        let modern = post(&client, accept, &call(json!(9), "echo", json!({}))).await;
        assert_eq!(modern.status(), StatusCode::SERVICE_UNAVAILABLE);
        let legacy = client.post(accept, &tool_call(json!(9), "echo", json!({}))).await;
        assert_eq!(legacy.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    let session = bridge.session().await;
    assert_eq!(session.call("echo", json!({ "text": "free" })).await, "free");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    eventually("the places to be free again", async || {
        post(&client, JSON, &call(json!(9), "echo", json!({ "text": "" })))
            .await
            .status()
            == StatusCode::OK
    })
    .await;
    bridge.stop().await;
}

#[tokio::test]
async fn a_subscription_keeps_its_child() {
    let bridge = Bridge::start(&[], |settings| {
        settings.isolation = Isolation::PerSession;
        settings.times.session_idle = Duration::from_secs(3);
    })
    .await;
    let client = bridge.client();
    let listen = request(json!("s"), "subscriptions/listen", json!({ "notifications": {} }));
    let mut events = Events::of(post(&client, BOTH, &listen).await);
    events.next_json().await;
    let first = who(&client).await;
    // Sessions that began later are over because they are unused; the subscription is in use.
    for _ in 0..2 {
        let idle = bridge.session().await.who().await;
        eventually("the end of an idle session", async || !is_alive(idle.pid)).await;
    }
    assert_eq!(who(&client).await.0, first.0, "the child is the same");
    drop(events);
    let pid = first.0;
    eventually("the end of an unused child", async || !is_alive(pid)).await;
    bridge.stop().await;
}

#[tokio::test]
async fn a_client_whose_scope_changes_gets_another_child() {
    let (tokens, places) = (Tokens::new(), tempfile::tempdir().unwrap());
    let top = places.path().canonicalize().unwrap();
    let bridge = tokens.bridge().await;
    let mut pids = Vec::new();
    for name in ["one", "two"] {
        std::fs::create_dir(top.join(name)).unwrap();
        std::fs::remove_file(tokens.file()).ok();
        let token = tokens.issue_for("user", None, Some(top.join(name)));
        let client = bearing(
            bridge.client(),
            "authorization",
            &format!("Bearer {}", token.expose()),
        );
        eventually("the new token to be known", async || {
            post(&client, JSON, &request(json!(1), "tools/list", json!({})))
                .await
                .status()
                == StatusCode::OK
        })
        .await;
        let (pid, scope) = who(&client).await;
        assert_eq!(scope, top.join(name));
        pids.push(pid);
    }
    let last = pids[0];
    eventually("the end of the child of the former scope", async || {
        !is_alive(last)
    })
    .await;
    bridge.stop().await;
}

/// The process that serves a client, and its scope.
async fn who(client: &Client) -> (i32, PathBuf) {
    let answer: Value = post(client, JSON, &call(json!(1), "who", json!({})))
        .await
        .json()
        .await
        .unwrap();
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"));
    let who: Value = serde_json::from_str(text).unwrap();
    let pid = i32::try_from(who["pid"].as_i64().unwrap()).unwrap();
    (pid, who["scope"].as_str().unwrap().into())
}

#[tokio::test]
async fn a_child_of_its_own_counts_as_a_session() {
    let bridge = Bridge::start(&[], |settings| {
        settings.isolation = Isolation::PerSession;
        settings.limits.sessions = 1;
    })
    .await;
    let session = bridge.session().await;
    let who = call(json!(1), "who", json!({}));
    assert_eq!(
        post(&bridge.client(), JSON, &who).await.status(),
        StatusCode::SERVICE_UNAVAILABLE
    );
    session.delete().await;
    assert_eq!(post(&bridge.client(), JSON, &who).await.status(), StatusCode::OK);
    let refused = bridge
        .client()
        .post(JSON, &initialize("2025-11-25", json!({})))
        .await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    bridge.stop().await;
}
