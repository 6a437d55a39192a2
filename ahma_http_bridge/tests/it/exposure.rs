//! Demands of a bridge that others can reach, and its records.

use ahma_http_bridge::{
    AuthSettings, BridgeSettings, ExposureError, Secret, TlsSettings, TokenSource, verify_audit,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::auth::bearing;
use crate::harness::{Bridge, BridgeProcess, Client, JSON, eventually, http_client, initialize, tool_call};

#[test]
fn a_bind_beyond_this_machine_needs_auth_and_tls() {
    let tls = TlsSettings {
        certificate: "c".into(),
        key: "k".into(),
    };
    let token = AuthSettings::Token(TokenSource::Single(Secret::new("t")));
    let outside = "0.0.0.0:1".parse().unwrap();
    let table = [
        ("127.0.0.1:1", AuthSettings::None, None, false, Ok(())),
        ("[::1]:1", AuthSettings::None, None, false, Ok(())),
        (
            "0.0.0.0:1",
            AuthSettings::None,
            Some(tls.clone()),
            false,
            Err(ExposureError::NoAuth(outside)),
        ),
        (
            "0.0.0.0:1",
            token.clone(),
            None,
            false,
            Err(ExposureError::NoTls(outside)),
        ),
        ("0.0.0.0:1", token.clone(), Some(tls), false, Ok(())),
        ("0.0.0.0:1", AuthSettings::None, None, true, Ok(())),
    ];
    for (address, auth, tls, insecure_http, expected) in table {
        let mut settings = BridgeSettings::new("/".into());
        (settings.auth, settings.tls, settings.insecure_http) = (auth, tls, insecure_http);
        assert_eq!(
            settings.check_exposure(address.parse().unwrap()),
            expected,
            "{address}"
        );
    }
}

#[tokio::test]
async fn over_a_threshold_new_sessions_wait_and_open_ones_go_on() {
    // One byte of memory is always used, so the threshold is crossed at the first look.
    let bridge = Bridge::start(&[], |settings| settings.limits.memory_bytes = Some(1)).await;
    let refused = async || {
        bridge
            .client()
            .post(JSON, &initialize("2025-11-25", json!({})))
            .await
    };
    eventually("a refusal", async || {
        refused().await.status() == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    assert!(refused().await.headers().contains_key("retry-after"));
    bridge.stop().await;
}

#[tokio::test]
async fn metrics_are_served_when_asked_for() {
    let bridge = Bridge::start(&[], |settings| settings.metrics = true).await;
    let client = bridge.session().await;
    client.call("echo", json!({ "text": "" })).await;
    let text = client
        .http
        .get(bridge.url("/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    for line in [
        "ahma_sessions 1",
        "ahma_sessions_opened_total 1",
        "ahma_children 1",
        "ahma_open_calls 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
    }
    bridge.stop().await;
    let quiet = Bridge::start(&[], |settings| settings.metrics = false).await;
    let status = http_client()
        .get(quiet.url("/metrics"))
        .send()
        .await
        .unwrap()
        .status();
    assert_eq!(status, StatusCode::NOT_FOUND);
    quiet.stop().await;
}

#[tokio::test]
async fn only_large_json_is_compressed() {
    let bridge = Bridge::shared().await;
    let client = bridge.session().await;
    let encoding = async |bytes: usize, accept: &str, encodings: &str| {
        let call = tool_call(json!(1), "huge", json!({ "bytes": bytes }));
        let response = client
            .http
            .post(&client.url)
            .header("accept", accept)
            .header("accept-encoding", encodings)
            .header("content-type", JSON)
            .header("mcp-session-id", client.session.as_deref().unwrap())
            .body(call.to_string())
            .send()
            .await
            .unwrap();
        response
            .headers()
            .get("content-encoding")
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let large = 2 << 20;
    assert_eq!(encoding(large, JSON, "gzip").await.as_deref(), Some("gzip"));
    assert_eq!(encoding(large, JSON, "zstd, gzip").await.as_deref(), Some("zstd"));
    assert_eq!(encoding(large, JSON, "identity").await, None);
    assert_eq!(encoding(100_000, JSON, "gzip").await, None);
    assert_eq!(encoding(large, crate::harness::BOTH, "gzip").await, None);
    bridge.stop().await;
}

#[tokio::test]
async fn the_audit_trail_tells_who_did_what() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let bridge = Bridge::start(&[], |settings| settings.audit_file = Some(file.clone())).await;
    let client = bridge.session().await;
    client
        .call("echo", json!({ "text": "x", "api_key": "s3cret" }))
        .await;
    client.try_call(json!(2), "no such tool", json!({})).await;
    client.delete().await;
    assert_eq!(
        client
            .post(JSON, &tool_call(json!(3), "echo", json!({})))
            .await
            .status(),
        StatusCode::NOT_FOUND
    );
    // This one is open when the bridge stops.
    bridge.session().await;
    bridge.stop().await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(verify_audit(&file).unwrap(), text.lines().count());
    assert!(!text.contains("s3cret"));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let expected = "server_started session_opened call call session_ended refused session_opened session_ended \
                    server_stopped";
    assert_eq!(events.join(" "), expected);
    let lines = &lines[1..];
    let refused = &lines[4];
    assert_eq!(
        (&refused["principal"], &refused["status"], &refused["path"]),
        (&json!("anonymous"), &json!(404), &json!("/mcp"))
    );
    assert!(
        refused["peer"].as_str().unwrap().starts_with("127.0.0.1:"),
        "{refused}"
    );
    assert_eq!(lines[6]["outcome"], "the bridge is shutting down");
    let call = &lines[1];
    assert_eq!(
        (&call["tool"], &call["outcome"], &call["principal"]),
        (&json!("echo"), &json!("answered"), &json!("anonymous"))
    );
    assert_eq!(call["arguments"], json!({ "text": "x", "api_key": "[redacted]" }));
    assert_eq!(lines[2]["outcome"], "error -32602");
}

#[tokio::test]
async fn no_credential_is_ever_written() {
    let directory = tempfile::tempdir().unwrap();
    let audit = directory.path().join("audit.jsonl");
    let flags = ["--debug", "--audit-file", audit.to_str().unwrap()];
    let bridge = BridgeProcess::start(&[("AHMA_HTTP_TOKEN", "planted-1")], &flags);
    let client = |value: &str| bearing(bridge.client(), "authorization", value);
    let mut good = client("Bearer planted-1");
    good.initialize(json!({})).await;
    let arguments = json!({ "text": "hello", "token": "planted-2", "nested": { "Password": "planted-3" } });
    good.call("echo", arguments).await;
    // In the middle of a text there is no key to tell.
    let command =
        "curl -H 'Authorization: Bearer planted-6' -H 'X-API-Key: planted-7' h; echo planted-1 | tee x";
    good.call("echo", json!({ "text": command, "planted-1": "key" }))
        .await;
    assert_eq!(good.call("env", json!({ "name": "AHMA_HTTP_TOKEN" })).await, "");
    // Nor is there a place that a client cannot put it in.
    good.try_call(json!(2), "planted-1", json!({})).await;
    let odd = json!({ "jsonrpc": "2.0", "id": 3, "method": "planted-1" });
    good.post(JSON, &odd).await;
    let get = |path: &str| good.http.get(good.url.replace("/mcp", path));
    get("/planted-1").send().await.unwrap();
    get("/mcp").header("host", "planted-1").send().await.unwrap();
    get("/mcp").header("accept", "planted-1").send().await.unwrap();
    let modern = json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {
        "name": "echo", "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
    let refused = good
        .http
        .post(&good.url)
        .header("content-type", JSON)
        .header("accept", JSON)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "planted-1")
        .body(modern.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    for value in ["Bearer planted-4", "Basic planted-5"] {
        let refused = client(value)
            .post(JSON, &initialize("2025-11-25", json!({})))
            .await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    }
    let written = bridge.stop();
    let audited = std::fs::read_to_string(&audit).unwrap();
    assert!(
        written.contains("\"text\": \"hello\""),
        "the echo works: {written}"
    );
    assert!(
        audited.contains("\"refused\"") && audited.contains("\"call\"") && audited.contains("| tee x"),
        "{audited}"
    );
    for replaced in [
        r#""tool":"[redacted]""#,
        r#""method":"[redacted]""#,
        r#""path":"/[redacted]""#,
        "host [redacted]",
    ] {
        assert!(audited.contains(replaced), "{replaced}: {audited}");
    }
    for place in [&written, &audited] {
        assert!(!place.contains("planted"), "{place}");
    }
}

#[tokio::test]
async fn a_refused_client_learns_nothing_of_others() {
    let bridge = Bridge::start(&[], |settings| {
        settings.auth = AuthSettings::Token(TokenSource::Single(Secret::new("t")));
    })
    .await;
    let mut good = bearing(bridge.client(), "x-api-key", "t");
    good.initialize(json!({})).await;
    let real = Client {
        http: http_client(),
        ..good.clone()
    };
    let made_up = Client {
        session: Some("made-up".to_owned()),
        ..real.clone()
    };
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let answers = [real.post(JSON, &ping).await, made_up.post(JSON, &ping).await];
    let texts = futures::future::join_all(answers.map(|answer| answer.text())).await;
    assert_eq!(texts[0].as_ref().unwrap(), texts[1].as_ref().unwrap());
    bridge.stop().await;
}
