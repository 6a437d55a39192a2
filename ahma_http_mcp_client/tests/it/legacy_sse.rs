//! A server of 2024-11-05, which knows neither Streamable HTTP nor `server/discover`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use ahma_http_mcp_client::{RemoteError, RemoteServers, ServerState, Step};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, Uri},
    response::sse::{Event, KeepAlive, Sse},
    routing::{get, post},
};
use futures::{Stream, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{host::Host, ready, server, settings, tool_names},
    remote::{call_of, text_of},
};

type Sessions = Arc<Mutex<HashMap<String, mpsc::UnboundedSender<Value>>>>;

fn app() -> Router {
    Router::new()
        .route("/sse", get(open))
        .route("/message", post(receive))
        .with_state(Sessions::default())
}

async fn open(
    State(sessions): State<Sessions>,
) -> Sse<impl Stream<Item = Result<Event, std::convert::Infallible>>> {
    let (tx, rx) = mpsc::unbounded_channel();
    let mut table = sessions.lock().unwrap();
    let id = format!("session{}", table.len());
    table.insert(id.clone(), tx);
    let endpoint = Event::default()
        .event("endpoint")
        .data(format!("/message?session={id}"));
    let messages = futures::stream::unfold(rx, |mut rx| async {
        let message: Value = rx.recv().await?;
        Some((Event::default().event("message").data(message.to_string()), rx))
    });
    Sse::new(futures::stream::iter([endpoint]).chain(messages).map(Ok)).keep_alive(KeepAlive::default())
}

async fn receive(State(sessions): State<Sessions>, uri: Uri, body: Bytes) -> (StatusCode, &'static str) {
    let session = uri
        .query()
        .and_then(|query| query.strip_prefix("session="))
        .unwrap_or_default()
        .to_owned();
    let Some(tx) = sessions.lock().unwrap().get(&session).cloned() else {
        return (StatusCode::NOT_FOUND, "no such session");
    };
    let message: Value = serde_json::from_slice(&body).unwrap();
    let id = message["id"].clone();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "die", "inputSchema": {"type": "object"}},
            {"name": "old_echo", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" if message["params"]["name"] == "die" => {
            sessions.lock().unwrap().remove(&session);
            return (StatusCode::ACCEPTED, "Accepted");
        }
        "tools/call" => {
            let token = &message["params"]["_meta"]["progressToken"];
            let progress = json!({"progressToken": token, "progress": 1});
            tx.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}))
                .unwrap();
            json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
        }
        _ => return (StatusCode::ACCEPTED, "Accepted"),
    };
    let _ = tx.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    (StatusCode::ACCEPTED, "Accepted")
}

#[tokio::test]
async fn an_old_server_is_found_after_the_newer_ways_failed() {
    let host = Host::start(|_| app());
    let dir = tempfile::tempdir().unwrap();
    let servers = RemoteServers::start(vec![server("old", &host.url("/sse"))], settings(&dir));
    let state = ready(&servers, "old").await;
    assert_eq!(tool_names(&state), ["die", "old_echo"]);
    let ServerState::Ready { report, .. } = state else {
        unreachable!()
    };
    assert_eq!(
        (report.step, report.protocol.as_str()),
        (Step::LegacySse, "2024-11-05")
    );
    let steps: Vec<String> = report.attempts.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        [
            "Streamable HTTP: HTTP 405 Method Not Allowed:",
            "HTTP+SSE: speaks 2024-11-05"
        ]
    );

    let never = CancellationToken::new();
    let (sink, mut progress) = mpsc::channel(8);
    let call = call_of("old_echo", json!({"text": "hi"}));
    let result = text_of(servers.call("old", call, Some(sink), &never).await.unwrap());
    assert_eq!(
        serde_json::to_value(&result.content).unwrap(),
        json!([{"type": "text", "text": "hi"}])
    );
    assert_eq!(progress.try_recv().unwrap().progress, 1.0);

    // The session ends under the call: an honest answer, and a new session by itself.
    let lost = servers
        .call("old", call_of("die", json!({})), None, &never)
        .await
        .unwrap_err();
    assert!(matches!(lost, RemoteError::Lost { .. }), "{lost:?}");
    let again = call_of("old_echo", json!({"text": "back"}));
    servers.call("old", again, None, &never).await.unwrap();
    servers.shutdown().await;
}
