//! Tokens: who comes in, who does not, and whose session is whose.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ahma_http_bridge::{AuthSettings, Isolation, Role, Secret, TokenParams, TokenSource, issue_token};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Bridge, Client, JSON, eventually, initialize, tool_call};

pub(crate) struct Tokens {
    directory: TempDir,
    file: PathBuf,
}

impl Tokens {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tokens.json");
        Self { directory, file }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    fn issue(&self, name: &str) -> Secret {
        self.issue_for(name, None, None)
    }

    pub(crate) fn issue_for(&self, name: &str, lifetime: Option<Duration>, scope: Option<PathBuf>) -> Secret {
        let params = TokenParams {
            name: name.to_owned(),
            lifetime,
            scope,
            max_sessions: Some(2),
            role: Role::Agent,
            tools: None,
        };
        issue_token(&self.file, params).unwrap().token
    }

    pub(crate) async fn bridge(&self) -> Bridge {
        let count = self.directory.path().join("starts");
        let flag = format!("--count={}", count.display());
        Bridge::start(&[&flag], |settings| {
            settings.isolation = Isolation::PerSession;
            settings.auth = AuthSettings::Token(TokenSource::File(self.file.clone()));
        })
        .await
    }

    /// Number of children ever started.
    fn starts(&self) -> usize {
        std::fs::read_to_string(self.directory.path().join("starts"))
            .unwrap_or_default()
            .lines()
            .count()
    }
}

/// A client that sends this header with everything.
pub(crate) fn bearing(client: Client, name: &str, value: &str) -> Client {
    let mut value = HeaderValue::from_str(value).unwrap();
    value.set_sensitive(true);
    let headers = HeaderMap::from_iter([(HeaderName::from_bytes(name.as_bytes()).unwrap(), value)]);
    let http = reqwest::Client::builder()
        .no_proxy()
        .default_headers(headers)
        .build()
        .unwrap();
    Client { http, ..client }
}

fn challenge(response: &Response) -> String {
    response.headers()[WWW_AUTHENTICATE].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn who_has_no_good_token_is_refused_and_reaches_no_child() {
    let tokens = Tokens::new();
    let good = tokens.issue("good");
    let expired = tokens.issue_for("expired", Some(Duration::ZERO), None);
    let bridge = tokens.bridge().await;
    let truncated = &good.expose()[..good.expose().len() - 1];
    let table = [
        ("x-nothing", String::new(), "Bearer realm=\"mcp\""),
        ("authorization", "Bearer wrong".to_owned(), "not known"),
        ("authorization", format!("Bearer {truncated}"), "not known"),
        ("authorization", format!("Bearer {}", expired.expose()), "expired"),
        (
            "authorization",
            format!("Basic {}", good.expose()),
            "Bearer realm=\"mcp\"",
        ),
        ("authorization", "Bearer ".to_owned(), "Bearer realm=\"mcp\""),
        ("x-api-key", "wrong".to_owned(), "not known"),
    ];
    for (name, value, expected) in table {
        let client = bearing(bridge.client(), name, &value);
        let post = client.post(JSON, &initialize("2025-11-25", json!({}))).await;
        let get = client
            .http
            .get(&client.url)
            .header("accept", "text/event-stream")
            .send()
            .await
            .unwrap();
        let delete = client.http.delete(&client.url).send().await.unwrap();
        let sse = client.http.get(bridge.url("/mcp/sse")).send().await.unwrap();
        let metrics = client.http.get(bridge.url("/metrics")).send().await.unwrap();
        for response in [post, get, delete, sse, metrics] {
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{name}: {expected}");
            assert!(
                challenge(&response).contains(expected),
                "{}",
                challenge(&response)
            );
        }
        let health = client.http.get(bridge.url("/healthz")).send().await.unwrap();
        assert_eq!(health.status(), StatusCode::OK);
    }
    assert_eq!(tokens.starts(), 0);
    for (name, value) in [
        ("authorization", format!("bearer {}", good.expose())),
        ("x-api-key", good.expose().to_owned()),
    ] {
        let mut client = bearing(bridge.client(), name, &value);
        client.initialize(json!({})).await;
        assert_eq!(client.call("echo", json!({ "text": "in" })).await, "in");
    }
    bridge.stop().await;
}

#[tokio::test]
async fn no_path_of_the_event_stream_is_a_way_around_the_token() {
    let path = "/.well-known/oauth-protected-resource-and-more";
    let bridge = Bridge::start(&[], |settings| {
        settings.auth = AuthSettings::Token(TokenSource::Single(Secret::new("the-one")));
        settings.sse_path = path.parse().unwrap();
    })
    .await;
    let http = bridge.client().http;
    let response = http.get(bridge.url(path)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    bridge.stop().await;
}

#[tokio::test]
async fn a_session_belongs_to_the_one_who_made_it() {
    let tokens = Tokens::new();
    let (mine, yours) = (tokens.issue("mine"), tokens.issue("yours"));
    let bridge = tokens.bridge().await;
    let mut me = bearing(
        bridge.client(),
        "authorization",
        &format!("Bearer {}", mine.expose()),
    );
    me.initialize(json!({})).await;
    let you = bearing(
        bridge.client(),
        "authorization",
        &format!("Bearer {}", yours.expose()),
    );
    let thief = Client {
        session: me.session.clone(),
        ..you
    };
    let call = tool_call(json!(1), "echo", json!({ "text": "" }));
    assert_eq!(thief.post(JSON, &call).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(thief.delete().await, StatusCode::NOT_FOUND);
    assert_eq!(me.call("echo", json!({ "text": "mine" })).await, "mine");
    bridge.stop().await;
}

#[tokio::test]
async fn a_token_has_its_own_scope_and_its_own_cap() {
    let tokens = Tokens::new();
    let scope = tempfile::tempdir().unwrap();
    let token = tokens.issue_for("confined", None, Some(scope.path().to_owned()));
    let bridge = tokens.bridge().await;
    let client = || {
        bearing(
            bridge.client(),
            "authorization",
            &format!("Bearer {}", token.expose()),
        )
    };
    let mut first = client();
    first.initialize(json!({})).await;
    assert_eq!(first.who().await.scope, scope.path().canonicalize().unwrap());
    client().initialize(json!({})).await;
    let third = client().post(JSON, &initialize("2025-11-25", json!({}))).await;
    assert_eq!(third.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(third.headers().contains_key("retry-after"));
    bridge.stop().await;
}

#[tokio::test]
async fn a_revoked_token_is_out_without_a_restart() {
    let tokens = Tokens::new();
    let token = tokens.issue("someone");
    let bridge = tokens.bridge().await;
    let mut client = bearing(
        bridge.client(),
        "authorization",
        &format!("Bearer {}", token.expose()),
    );
    client.initialize(json!({})).await;
    std::fs::write(&tokens.file, r#"{"tokens":[]}"#).unwrap();
    eventually("the token to be refused", async || {
        client.try_call(json!(1), "echo", json!({ "text": "" })).await.0 == StatusCode::UNAUTHORIZED
    })
    .await;
    std::fs::remove_file(&tokens.file).unwrap();
    eventually("every client to be refused", async || {
        let call = tool_call(json!(1), "echo", json!({ "text": "" }));
        let refused = client.post(JSON, &call).await;
        let is_told = refused.headers().contains_key("retry-after");
        refused.status() == StatusCode::SERVICE_UNAVAILABLE && is_told
    })
    .await;
    bridge.stop().await;
}

#[tokio::test]
async fn sessions_end_when_their_token_is_confined_to_another_directory() {
    let tokens = Tokens::new();
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let token = tokens.issue_for("moved", None, Some(old.path().to_owned()));
    let other = tokens.issue_for("other", None, Some(old.path().to_owned()));
    let bridge = tokens.bridge().await;
    let client = |token: &Secret| {
        let value = format!("Bearer {}", token.expose());
        bearing(bridge.client(), "authorization", &value)
    };
    let (mut moved, mut stays) = (client(&token), client(&other));
    moved.initialize(json!({})).await;
    stays.initialize(json!({})).await;
    let text = std::fs::read_to_string(&tokens.file).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    file["tokens"][0]["scope"] = json!(new.path());
    std::fs::write(&tokens.file, file.to_string()).unwrap();
    eventually("the end of the session", async || {
        moved.try_call(json!(1), "echo", json!({ "text": "" })).await.0 == StatusCode::NOT_FOUND
    })
    .await;
    moved.initialize(json!({})).await;
    assert_eq!(moved.who().await.scope, new.path().canonicalize().unwrap());
    assert_eq!(stays.who().await.scope, old.path().canonicalize().unwrap());
    bridge.stop().await;
}

#[tokio::test]
async fn one_token_from_the_environment_serves_all_clients() {
    let bridge = Bridge::start(&[], |settings| {
        settings.auth = AuthSettings::Token(TokenSource::Single(Secret::new("the-one")));
    })
    .await;
    let mut client = bearing(bridge.client(), "x-api-key", "the-one");
    client.initialize(json!({})).await;
    let other = bearing(bridge.client(), "x-api-key", "another");
    assert_eq!(
        other
            .post(JSON, &initialize("2025-11-25", json!({})))
            .await
            .status(),
        StatusCode::UNAUTHORIZED
    );
    bridge.stop().await;
}

#[tokio::test]
async fn a_page_can_read_that_it_lacks_a_credential() {
    let tokens = Tokens::new();
    tokens.issue("other");
    let bridge = tokens.bridge().await;
    let client = bearing(bridge.client(), "origin", "http://localhost:5173");
    let response = client.post(JSON, &initialize("2025-11-25", json!({}))).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let headers = response.headers();
    assert_eq!(headers["access-control-allow-origin"], "http://localhost:5173");
    let exposed = headers["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("www-authenticate"), "{exposed}");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    bridge.stop().await;
}

#[tokio::test]
async fn a_backend_is_told_the_principal_of_every_request() {
    let tokens = Tokens::new();
    let token = tokens.issue("alice");
    for isolation in [Isolation::Shared, Isolation::PerSession] {
        let bridge = Bridge::naming_clients(|settings| {
            settings.isolation = isolation;
            settings.auth = AuthSettings::Token(TokenSource::File(tokens.file().to_owned()));
        })
        .await;
        let mut client = bearing(
            bridge.client(),
            "authorization",
            &format!("Bearer {}", token.expose()),
        );
        client.initialize(json!({})).await;
        let meta: Value = serde_json::from_str(&client.call("meta", json!({})).await).unwrap();
        assert_eq!(meta["ahma/principal"], "alice", "{isolation:?}: {meta}");
        // A child of all clients has no principal of its own.
        let own = client.call("env", json!({ "name": "AHMA_PRINCIPAL" })).await;
        let expected = match isolation {
            Isolation::Shared => "",
            Isolation::PerSession => "alice",
        };
        assert_eq!(own, expected, "{isolation:?}");
        bridge.stop().await;
    }
}

#[tokio::test]
async fn without_credentials_a_client_has_no_principal() {
    let bridge = Bridge::shared_naming_clients().await;
    let client = bridge.session().await;
    let meta: Value = serde_json::from_str(&client.call("meta", json!({})).await).unwrap();
    assert!(
        meta["ahma/client"].is_string() && meta["ahma/principal"].is_null(),
        "{meta}"
    );
}
