//! The table of what each request is answered with.

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::harness::{BOTH, Bridge, Client, Events, JSON, initialize, tool_call, with_token};

async fn raw(client: &Client, headers: &[(&str, &str)], body: impl Into<String>) -> (StatusCode, String) {
    let mut request = client.http.post(&client.url).body(body.into());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

#[tokio::test]
async fn the_accept_header_chooses_the_form_of_the_answer() {
    for bridge in [Bridge::shared().await, Bridge::isolated().await] {
        let client = bridge.session().await;
        let call = tool_call(json!("a"), "echo", json!({ "text": "hi" }));
        for (accept, content_type) in [(JSON, JSON), ("*/*", JSON), (BOTH, "text/event-stream")] {
            let response = client.post(accept, &call).await;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[CONTENT_TYPE], content_type, "{accept}");
            let answer: Value = match content_type {
                JSON => response.json().await.unwrap(),
                _ => Events::of(response).rest().await.remove(0),
            };
            assert_eq!(answer["id"], "a");
            assert_eq!(answer["result"]["content"][0]["text"], "hi");
        }
        let response = client.post("text/html", &call).await;
        assert_eq!(response.status(), StatusCode::NOT_ACCEPTABLE);
        bridge.stop().await;
    }
}

#[tokio::test]
async fn a_session_id_is_a_uuid_and_needed_with_isolation() {
    let bridge = Bridge::isolated().await;
    let client = bridge.session().await;
    let id = client.session.clone().unwrap();
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 4);

    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let without_session = bridge.client();
    let response = without_session.post(JSON, &ping).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["id"], 1);
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("mcp-session-id")
    );

    let stranger = Client {
        session: Some(uuid::Uuid::new_v4().to_string()),
        ..bridge.client()
    };
    assert_eq!(stranger.post(JSON, &ping).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(stranger.delete().await, StatusCode::NOT_FOUND);
    assert_eq!(without_session.delete().await, StatusCode::BAD_REQUEST);

    assert_eq!(client.delete().await, StatusCode::NO_CONTENT);
    assert_eq!(client.post(JSON, &ping).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(client.delete().await, StatusCode::NOT_FOUND);
    bridge.stop().await;
}

#[tokio::test]
async fn without_isolation_a_post_needs_no_session() {
    let bridge = Bridge::shared().await;
    let client = bridge.client();
    assert_eq!(client.call("echo", json!({ "text": "x" })).await, "x");
    let events = Events::of(
        client
            .post(BOTH, &tool_call(json!(7), "echo", json!({ "text": "y" })))
            .await,
    );
    assert_eq!(events.rest().await[0]["id"], 7);
    assert_eq!(client.delete().await, StatusCode::BAD_REQUEST);
    let get = client.http.get(&client.url).header("accept", "text/event-stream");
    assert_eq!(get.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    bridge.stop().await;
}

#[tokio::test]
async fn notifications_and_responses_are_accepted_without_a_body() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    for message in [
        json!({ "jsonrpc": "2.0", "method": "notifications/anything" }),
        json!({ "jsonrpc": "2.0", "id": 99, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 99, "error": { "code": 1, "message": "x" } }),
    ] {
        let response = client.post(BOTH, &message).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert_eq!(response.text().await.unwrap(), "");
    }
    bridge.stop().await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_a_json_rpc_error() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let session = client.session.clone().unwrap();
    let headers = [("content-type", JSON), ("mcp-session-id", session.as_str())];
    let table = [
        ("{", 400, -32700),
        ("", 400, -32700),
        ("nonsense", 400, -32700),
        ("{\"jsonrpc\":\"2.0\"}", 400, -32600),
        ("{\"id\":1,\"method\":\"ping\"}", 400, -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            400,
            -32600,
        ),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            400,
            -32600,
        ),
        ("7", 400, -32600),
    ];
    for (body, status, code) in table {
        let (found, text) = raw(&client, &headers, body).await;
        assert_eq!(found, status, "{body}: {text}");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["error"]["code"], code, "{body}: {text}");
        assert_eq!(error["jsonrpc"], "2.0");
    }
    let (status, _) = raw(&client, &[("content-type", "text/plain")], "{}").await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let versions = [
        ("content-type", JSON),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "1999-01-01"),
    ];
    let (status, _) = raw(
        &client,
        &versions,
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string(),
    )
    .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    bridge.stop().await;
}

#[tokio::test]
async fn a_batch_is_answered_in_the_revision_that_has_them() {
    let bridge = Bridge::shared().await;
    let mut client = bridge.client();
    let result = client.initialize_as("2025-03-26", json!({})).await;
    assert_eq!(result["protocolVersion"], "2025-03-26");
    let batch = json!([
        { "jsonrpc": "2.0", "method": "notifications/x" },
        tool_call(json!(1), "echo", json!({ "text": "one" })),
        tool_call(json!("2"), "echo", json!({ "text": "two" })),
    ]);
    let expected = |mut answers: Vec<Value>| {
        answers.sort_by_key(|answer| answer["id"].to_string());
        let texts: Vec<_> = answers
            .iter()
            .map(|answer| answer["result"]["content"][0]["text"].clone())
            .collect();
        assert_eq!(texts, ["two", "one"]);
    };
    expected(client.post(JSON, &batch).await.json().await.unwrap());
    expected(Events::of(client.post(BOTH, &batch).await).rest().await);
    let told = client
        .post(JSON, &json!([{ "jsonrpc": "2.0", "method": "notifications/x" }]))
        .await;
    assert_eq!(told.status(), StatusCode::ACCEPTED);
    let nested = client
        .post(JSON, &json!([initialize("2025-03-26", json!({}))]))
        .await;
    assert_eq!(nested.status(), StatusCode::BAD_REQUEST);
    bridge.stop().await;
}

#[tokio::test]
async fn a_batch_has_only_so_many_members() {
    let bridge = Bridge::shared().await;
    let mut client = bridge.client();
    client.initialize_as("2025-03-26", json!({})).await;
    let batch = |count: usize| {
        let member = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": { "uri": "x:" } });
        Value::from_iter((0..count).map(member))
    };
    for accept in [JSON, BOTH] {
        let refused = client.post(accept, &batch(257)).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        let body: Value = refused.json().await.unwrap();
        assert_eq!(body["error"]["code"], -32600, "{body}");
    }
    let answers: Vec<Value> = client.post(JSON, &batch(256)).await.json().await.unwrap();
    assert_eq!(answers.len(), 256);
    bridge.stop().await;
}

#[tokio::test]
async fn a_key_given_twice_is_refused_in_every_message() {
    let bridge = Bridge::shared().await;
    let mut client = bridge.client();
    client.initialize_as("2025-03-26", json!({})).await;
    let session = client.session.clone().unwrap();
    let headers = [("content-type", JSON), ("mcp-session-id", session.as_str())];
    let call =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let calls = [
        r#"{"name":"echo","name":"slow"}"#,
        r#"{"name":"echo","_meta":{"progressToken":1,"progressToken":2}}"#,
    ]
    .map(call);
    let others = [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"ahma/client":"1","ahma/client":"2"}}}"#,
    ]
    .map(str::to_owned);
    for body in calls.iter().chain(&others) {
        let (status, text) = raw(&client, &headers, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {text}");
        let refused: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(refused["error"]["code"], -32600, "{body}: {text}");
    }
    // In a batch each is answered for itself.
    let fine = call(r#"{"name":"echo","arguments":{"text":"fine"}}"#);
    let batch = format!("[{},{},{fine}]", calls[0], calls[1]);
    let (status, text) = raw(&client, &headers, batch).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let answers: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answers[0]["error"]["code"], -32600, "{text}");
    assert_eq!(answers[1]["error"]["code"], -32600, "{text}");
    assert_eq!(answers[2]["result"]["content"][0]["text"], "fine", "{text}");
    bridge.stop().await;
}

#[tokio::test]
async fn a_long_id_or_progress_token_is_refused_in_every_message() {
    let bridge = Bridge::shared().await;
    let mut client = bridge.client();
    client.initialize_as("2025-03-26", json!({})).await;
    let long = Value::from("x".repeat(2000));
    let echo = |id: Value| tool_call(id, "echo", json!({ "text": "fine" }));
    let by_id = echo(long.clone());
    let by_token = with_token(echo(json!(1)), long);
    let batches = [json!([by_id]), json!([by_token])];
    for message in [&by_id, &by_token, &batches[0]] {
        for accept in [JSON, BOTH] {
            let refused = client.post(accept, message).await;
            assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
            let body: Value = refused.json().await.unwrap();
            assert_eq!(body["error"]["code"], -32600, "{body}");
        }
    }
    // Its id is known, so it is answered for itself.
    let answers: Value = client.post(JSON, &batches[1]).await.json().await.unwrap();
    assert_eq!(answers[0]["error"]["code"], -32600, "{answers}");
    bridge.stop().await;
}

#[tokio::test]
async fn bodies_pass_through_untouched() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let odd = "\u{1F600} \\u0000 \n\t\"quotes\" 1e400";
    assert_eq!(client.call("echo", json!({ "text": odd })).await, odd);
    for id in [
        json!(0),
        json!(-1),
        json!("x\"y"),
        json!(18446744073709551615_u64),
        json!(1.5),
    ] {
        let (_, answer) = client.try_call(id.clone(), "echo", json!({ "text": "" })).await;
        assert_eq!(answer["id"], id);
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_body_over_the_bound_is_refused() {
    let bridge = Bridge::start(&[], |settings| settings.limits.body_bytes = 1000).await;
    let client = bridge.session().await;
    let (status, body) = client
        .try_call(json!(1), "echo", json!({ "text": "x".repeat(2000) }))
        .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{body}");
    assert_eq!(client.call("echo", json!({ "text": "x" })).await, "x");
    bridge.stop().await;
}

#[tokio::test]
async fn sessions_over_the_cap_are_told_to_come_back() {
    let bridge = Bridge::start(&[], |settings| settings.limits.sessions = 2).await;
    let first = bridge.session().await;
    let _second = bridge.session().await;
    let response = bridge
        .client()
        .post(JSON, &initialize("2025-11-25", json!({})))
        .await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(
        first.call("echo", json!({ "text": "still here" })).await,
        "still here"
    );
    assert_eq!(first.delete().await, StatusCode::NO_CONTENT);
    bridge.session().await;
    bridge.stop().await;
}

#[tokio::test]
async fn foreign_pages_are_kept_out() {
    let bridge = Bridge::shared().await;
    let client = bridge.client();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let table = [
        (vec![("origin", "http://localhost.evil.com")], 403),
        (vec![("origin", "https://evil.example")], 403),
        (vec![("host", "evil.example")], 403),
        (vec![("origin", "http://localhost:5173")], 200),
        (vec![], 200),
    ];
    for (headers, status) in table {
        let mut headers = headers;
        headers.push(("content-type", JSON));
        let (found, _) = raw(&client, &headers, ping.clone()).await;
        assert_eq!(found, status, "{headers:?}");
    }
    let preflight = client
        .http
        .request(reqwest::Method::OPTIONS, &client.url)
        .header("origin", "http://localhost:5173")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "Mcp-Param-Region, x-other, mcp-param-b",
        )
        .send()
        .await
        .unwrap();
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    let allowed = preflight.headers()["access-control-allow-headers"]
        .to_str()
        .unwrap();
    assert!(
        allowed.ends_with(", x-api-key, mcp-param-region, mcp-param-b"),
        "{allowed}"
    );
    assert_eq!(
        preflight.headers()["access-control-allow-origin"],
        "http://localhost:5173"
    );
    bridge.stop().await;
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist_say_so() {
    let bridge = Bridge::shared().await;
    let client = bridge.client();
    let get = async |path: &str| client.http.get(bridge.url(path)).send().await.unwrap().status();
    assert_eq!(get("/healthz").await, StatusCode::OK);
    assert_eq!(get("/nothing").await, StatusCode::NOT_FOUND);
    assert_eq!(get("/mcp").await, StatusCode::NOT_ACCEPTABLE);
    for (path, allowed) in [
        ("/mcp", "GET, POST, DELETE"),
        ("/mcp/sse", "GET"),
        ("/mcp/sse/message", "POST"),
        ("/healthz", "GET, HEAD"),
        ("/metrics", "GET, HEAD"),
    ] {
        let put = client.http.put(bridge.url(path)).send().await.unwrap();
        assert_eq!(put.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(put.headers()["allow"], allowed, "{path}");
    }
    bridge.stop().await;
}
