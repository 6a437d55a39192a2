//! The HTTP+SSE transport of 2024-11-05.

use ahma_http_bridge::Isolation;
use reqwest::StatusCode;
use serde_json::json;

use crate::harness::{Bridge, Client, Events, eventually, http_client, initialize, is_alive, tool_call};

/// Opens the stream; gives back it and a client that posts beside it.
async fn open(bridge: &Bridge) -> (Events, Client) {
    let http = http_client();
    let response = http
        .get(bridge.url("/mcp/sse"))
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    let mut events = Events::of(response);
    let endpoint = events.next().await.unwrap();
    assert_eq!(endpoint.name.as_deref(), Some("endpoint"));
    (
        events,
        Client {
            url: bridge.url(&endpoint.data),
            session: None,
            http,
        },
    )
}

#[tokio::test]
async fn answers_come_on_the_stream_and_its_end_ends_the_session() {
    for bridge in [Bridge::shared().await, Bridge::isolated().await] {
        let (mut events, client) = open(&bridge).await;
        let accepted = client.post("*/*", &initialize("2024-11-05", json!({}))).await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
        let greeting = events.next().await.unwrap();
        assert_eq!(greeting.name.as_deref(), Some("message"));
        assert_eq!(greeting.json()["result"]["protocolVersion"], "2024-11-05");
        client
            .post(
                "*/*",
                &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            )
            .await;
        client
            .post("*/*", &tool_call(json!(2), "echo", json!({ "text": "old" })))
            .await;
        assert_eq!(events.next_json().await["result"]["content"][0]["text"], "old");
        drop(events);
        eventually("the end of the session", async || {
            client
                .post("*/*", &tool_call(json!(3), "echo", json!({})))
                .await
                .status()
                == StatusCode::NOT_FOUND
        })
        .await;
        bridge.stop().await;
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_initialised_ends() {
    let bridge = Bridge::isolated().await;
    let (mut events, client) = open(&bridge).await;
    let nameless = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {},
    }});
    assert_eq!(client.post("*/*", &nameless).await.status(), StatusCode::ACCEPTED);
    assert_eq!(events.next_json().await["error"]["code"], -32602);
    assert_eq!(events.next().await, None, "the stream ends with its session");
    bridge.stop().await;

    let bridge = Bridge::start(&["--die"], |settings| settings.isolation = Isolation::PerSession).await;
    let (mut events, client) = open(&bridge).await;
    let refused = client.post("*/*", &initialize("2024-11-05", json!({}))).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(events.next().await, None, "the stream ends with its session");
    bridge.stop().await;
}

#[tokio::test]
async fn a_second_initialize_does_no_harm() {
    let bridge = Bridge::isolated().await;
    let (mut events, client) = open(&bridge).await;
    let greeting = initialize("2024-11-05", json!({}));
    assert_eq!(client.post("*/*", &greeting).await.status(), StatusCode::ACCEPTED);
    events.next().await.unwrap();
    assert_eq!(
        client.post("*/*", &greeting).await.status(),
        StatusCode::BAD_REQUEST
    );
    let echo = tool_call(json!(2), "echo", json!({ "text": "still here" }));
    client.post("*/*", &echo).await;
    let answer = events.next_json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "still here");
    bridge.stop().await;
}

#[tokio::test]
async fn the_child_goes_with_the_stream() {
    let bridge = Bridge::isolated().await;
    let (mut events, client) = open(&bridge).await;
    client.post("*/*", &initialize("2024-11-05", json!({}))).await;
    events.next().await.unwrap();
    client.post("*/*", &tool_call(json!(2), "who", json!({}))).await;
    let text = events.next_json().await["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    let who: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pid = i32::try_from(who["pid"].as_i64().unwrap()).unwrap();
    drop(events);
    eventually("the child's end", async || !is_alive(pid)).await;
    bridge.stop().await;
}

#[tokio::test]
async fn a_request_that_can_be_read_in_two_ways_reaches_no_child() {
    let bridge = Bridge::shared().await;
    let (mut events, client) = open(&bridge).await;
    client.post("*/*", &initialize("2024-11-05", json!({}))).await;
    events.next().await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"},"_meta":{"progressToken":4,"progressToken":4}}}"#;
    let posted = client
        .http
        .post(&client.url)
        .header("content-type", "application/json")
        .body(body)
        .send();
    assert_eq!(posted.await.unwrap().status(), StatusCode::ACCEPTED);
    let answer = events.next_json().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(2), &json!(-32600)),
        "{answer}"
    );
    bridge.stop().await;
}
