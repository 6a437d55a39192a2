//! Arbitrary input: no answer that says we are broken, no hang, and the next client is served.
//!
//! `PROPTEST_CASES=100000 cargo test --test it fuzz` goes on for as long as one likes.

use proptest::prelude::*;
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::harness::{Bridge, Client, TEST_TIMEOUT, tool_call};

/// Cases of each test by default.
const CASES: u32 = 64;

fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(CASES),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// JSON of any shape, with the words of the protocol in it.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let word = prop_oneof![
        Just("jsonrpc"),
        Just("2.0"),
        Just("id"),
        Just("method"),
        Just("params"),
        Just("result"),
        Just("error"),
        Just("_meta"),
        Just("progressToken"),
        Just("initialize"),
        Just("tools/list"),
        Just("requestId"),
        Just("notifications/cancelled"),
        Just("notifications/initialized"),
        Just("protocolVersion"),
        Just("io.modelcontextprotocol/protocolVersion"),
        Just("2026-07-28"),
        Just("roots"),
        Just("capabilities"),
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        word.clone().prop_map(|value| json!(value)),
        any::<String>().prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let key = prop_oneof![3 => word.clone().prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| json!(items)),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|fields| json!(fields)),
        ]
    })
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    // A good message with a piece of it replaced.
    let message = tool_call(json!(1), "echo", json!({ "text": "x" }))
        .to_string()
        .into_bytes();
    let mutated =
        (0..message.len(), prop::collection::vec(any::<u8>(), 0..4)).prop_map(move |(at, bytes)| {
            let mut body = message.clone();
            body.splice(at..(at + 1), bytes);
            body
        });
    let shaped = any_json().prop_map(|mut value| {
        if let Some(fields) = value.as_object_mut() {
            fields.entry("jsonrpc").or_insert(json!("2.0"));
            fields.entry("method").or_insert(json!("tools/list"));
        }
        value.to_string().into_bytes()
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), mutated, shaped]
}

fn any_header() -> impl Strategy<Value = (&'static str, String)> {
    let name = prop_oneof![
        Just("accept"),
        Just("mcp-session-id"),
        Just("mcp-protocol-version"),
        Just("mcp-method"),
        Just("mcp-name"),
        Just("last-event-id"),
        Just("authorization"),
        Just("origin"),
        Just("content-type"),
    ];
    let value = prop_oneof![
        "[ -~]{0,20}",
        Just("application/json, text/event-stream".to_owned()),
        Just("2026-07-28".to_owned()),
        Just("2025-03-26".to_owned()),
        Just("tools/list".to_owned()),
    ];
    (name, value)
}

async fn still_serves(client: &Client) {
    assert_eq!(client.call("echo", json!({ "text": "alive" })).await, "alive");
}

#[test]
fn any_message_gets_an_answer_that_is_not_our_fault() {
    let runtime = Runtime::new().unwrap();
    let (bridge, client) = runtime.block_on(async {
        let bridge = Bridge::start(&[], |settings| settings.limits.sessions = 1_000_000).await;
        let client = bridge.session().await;
        (bridge, client)
    });
    let session = client.session.clone().unwrap();
    let headers = prop::collection::vec(any_header(), 0..4);
    proptest!(config(), |(body in any_body(), headers in headers, in_session in any::<bool>())| {
        let mut request = client.http.post(&client.url).header("content-type", "application/json").body(body);
        if in_session {
            request = request.header("mcp-session-id", &session);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let status = runtime.block_on(async {
            let answered = tokio::time::timeout(TEST_TIMEOUT, request.send()).await.expect("an answer");
            answered.expect("a response").status()
        });
        prop_assert!(status < StatusCode::INTERNAL_SERVER_ERROR, "{status}");
    });
    runtime.block_on(async {
        still_serves(&client).await;
        bridge.stop().await;
    });
}

#[test]
fn any_bytes_on_a_connection_harm_no_other_client() {
    let runtime = Runtime::new().unwrap();
    let (bridge, client) = runtime.block_on(async {
        let bridge = Bridge::start(&[], |settings| {
            settings.times.head = std::time::Duration::from_secs(2);
            settings.times.body = std::time::Duration::from_secs(2);
        })
        .await;
        let client = bridge.session().await;
        (bridge, client)
    });
    let start = prop_oneof![
        Just(String::new()),
        Just("POST /mcp HTTP/1.1\r\nHost: localhost\r\n".to_owned()),
        Just("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
    ];
    proptest!(config(), |(start in start, bytes in prop::collection::vec(any::<u8>(), 0..300))| {
        runtime.block_on(async {
            let mut stream = TcpStream::connect(bridge.address).await.unwrap();
            // The bridge may close before it has read everything.
            let _ = stream.write_all(start.as_bytes()).await;
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let read = stream.read_to_end(&mut answer);
            drop(tokio::time::timeout(TEST_TIMEOUT, read).await.expect("the connection ends"));
            assert!(!answer.starts_with(b"HTTP/1.1 5"), "{}", String::from_utf8_lossy(&answer));
        });
    });
    runtime.block_on(async {
        // The idle client's connection was closed for its idleness, as it should be.
        let fresh = Client {
            http: crate::harness::http_client(),
            ..client
        };
        still_serves(&fresh).await;
        bridge.stop().await;
    });
}
