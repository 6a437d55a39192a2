//! A client of a bridge.

use std::path::PathBuf;
use std::sync::OnceLock;

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use super::Events;

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) url: String,
    pub(crate) session: Option<String>,
    pub(crate) http: reqwest::Client,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const BOTH: &str = "application/json, text/event-stream";

impl Client {
    pub(crate) async fn post(&self, accept: &str, message: &Value) -> Response {
        let mut request = self
            .http
            .post(&self.url)
            .header("accept", accept)
            .header("content-type", JSON)
            .body(message.to_string());
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request.send().await.unwrap()
    }

    /// Sends `initialize` and `notifications/initialized`; gives back the result.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        self.initialize_as("2025-11-25", capabilities).await
    }

    pub(crate) async fn initialize_as(&mut self, version: &str, capabilities: Value) -> Value {
        let response = self.post(JSON, &initialize(version, capabilities)).await;
        assert_eq!(response.status(), StatusCode::OK);
        self.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        let body: Value = response.json().await.unwrap();
        let told = self
            .post(
                JSON,
                &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            )
            .await;
        assert_eq!(told.status(), StatusCode::ACCEPTED);
        body["result"].clone()
    }

    /// Calls a tool and gives back status and whole answer.
    pub(crate) async fn try_call(&self, id: Value, tool: &str, arguments: Value) -> (StatusCode, Value) {
        let response = self.post(JSON, &tool_call(id, tool, arguments)).await;
        (response.status(), response.json().await.unwrap())
    }

    /// Calls a tool that must succeed, and gives back its text.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        let (client, tool) = (self.clone(), tool.to_owned());
        async move {
            let (status, body) = client.try_call(json!(1), &tool, arguments).await;
            assert_eq!(status, StatusCode::OK, "{tool} at {caller}: {body}");
            body["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_else(|| panic!("{body}"))
                .to_owned()
        }
    }

    pub(crate) async fn delete(&self) -> StatusCode {
        let mut request = self.http.delete(&self.url);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request.send().await.unwrap().status()
    }

    /// Opens the standing stream, or takes one up after this event.
    pub(crate) async fn events(&self, last_event_id: Option<&str>) -> Events {
        let mut request = self.http.get(&self.url).header("accept", "text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Events::of(response)
    }

    pub(crate) async fn who(&self) -> Who {
        let text = self.call("who", json!({})).await;
        let value: Value = serde_json::from_str(&text).unwrap();
        Who {
            pid: i32::try_from(value["pid"].as_i64().unwrap()).unwrap(),
            scope: value["scope"].as_str().unwrap().into(),
        }
    }
}

/// A child's report on itself.
#[derive(Debug)]
pub(crate) struct Who {
    pub(crate) pid: i32,
    pub(crate) scope: PathBuf,
}

pub(crate) fn initialize(version: &str, capabilities: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    }})
}

pub(crate) fn tool_call(id: Value, tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

pub(crate) fn with_token(mut message: Value, token: Value) -> Value {
    message["params"]["_meta"]["progressToken"] = token;
    message
}

pub(crate) fn http_client() -> reqwest::Client {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(64)
        .build()
        .unwrap()
}
