//! Clients that leave, and servers that are not there at the start.

use std::{sync::Arc, time::Duration};

use ahma_http_mcp_client::{RemoteError, front};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::fixture::{
    host::Host,
    server, settings,
    tools::{Era, router},
};

#[tokio::test]
async fn a_client_that_leaves_does_not_wait_for_a_silent_server() {
    let dir = tempfile::tempdir().unwrap();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = server("r", &format!("http://{}/mcp", silent.local_addr().unwrap()));
    let mut settings = settings(&dir);
    settings.connect_timeout = Duration::from_secs(3600);
    let said = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;
    let (output, client) = tokio::io::duplex(1 << 16);
    let fronting = front(&said[..], output, &config, &settings, |_| ());
    tokio::time::timeout(test_support::TEST_TIMEOUT, fronting)
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
    let answers = tokio::time::timeout(test_support::TEST_TIMEOUT, answers(hear))
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
    assert!(matches!(error, RemoteError::Connect { .. }), "{error:?}");
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
