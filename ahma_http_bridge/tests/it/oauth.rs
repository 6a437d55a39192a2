//! JWTs of an authorization server, with a real one-page issuer beside the bridge.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ahma_http_bridge::{AuthSettings, OAuthSettings};
use axum::Router;
use axum::routing::get;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::auth::bearing;
use crate::harness::{Bridge, JSON, initialize};

const RESOURCE: &str = "https://tools.example.com/mcp";

/// An authorization server with one key at a time.
struct Issuer {
    url: String,
    keys: Arc<Mutex<Value>>,
    server: tokio::task::JoinHandle<()>,
}

struct Key {
    id: String,
    pkcs8: Vec<u8>,
}

impl Key {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            pkcs8: rcgen::KeyPair::generate().unwrap().serialize_der(),
        }
    }

    fn signing(&self) -> EncodingKey {
        EncodingKey::from_ec_der(&self.pkcs8)
    }

    fn public(&self) -> Jwk {
        let mut key = Jwk::from_encoding_key(&self.signing(), Algorithm::ES256).unwrap();
        key.common.key_id = Some(self.id.clone());
        key
    }

    fn token(&self, claims: &Value) -> String {
        let header = Header {
            kid: Some(self.id.clone()),
            ..Header::new(Algorithm::ES256)
        };
        encode(&header, claims, &self.signing()).unwrap()
    }
}

impl Issuer {
    async fn start(key: &Key) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys = Arc::new(Mutex::new(json!({ "keys": [key.public()] })));
        let discovery = json!({ "issuer": url, "jwks_uri": format!("{url}/jwks") }).to_string();
        let served = Arc::clone(&keys);
        let router = Router::new()
            .route(
                "/.well-known/oauth-authorization-server",
                get(async move || discovery),
            )
            .route("/jwks", get(async move || served.lock().unwrap().to_string()));
        let service = hyper_util::service::TowerToHyperService::new(router);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(hyper_util::rt::TokioIo::new(stream), service.clone());
                tokio::spawn(async move { drop(connection.await) });
            }
        });
        Self { url, keys, server }
    }

    fn claims(&self) -> Value {
        json!({ "iss": self.url, "aud": RESOURCE, "sub": "user", "scope": "mcp:use other", "exp": now() + 600 })
    }

    async fn bridge(&self) -> (Bridge, tempfile::NamedTempFile) {
        let count = tempfile::NamedTempFile::new().unwrap();
        let flag = format!("--count={}", count.path().display());
        let bridge = Bridge::start(&[&flag], |settings| {
            settings.isolation = ahma_http_bridge::Isolation::PerSession;
            settings.auth = AuthSettings::OAuth(OAuthSettings {
                operator_scope: None,
                metrics_scope: None,
                issuer: self.url.clone(),
                resource: RESOURCE.to_owned(),
                required_scopes: vec!["mcp:use".to_owned()],
            });
        })
        .await;
        (bridge, count)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

async fn try_in(bridge: &Bridge, token: &str) -> (StatusCode, String) {
    let client = bearing(bridge.client(), "authorization", &format!("Bearer {token}"));
    let response = client.post(JSON, &initialize("2025-11-25", json!({}))).await;
    let challenge = response
        .headers()
        .get("www-authenticate")
        .map(|value| value.to_str().unwrap().to_owned());
    (response.status(), challenge.unwrap_or_default())
}

#[tokio::test]
async fn every_bad_token_is_refused_with_its_reason() {
    let key = Key::new("one");
    let issuer = Issuer::start(&key).await;
    let (bridge, starts) = issuer.bridge().await;
    let with = |field: &str, value: Value| {
        let mut claims = issuer.claims();
        claims[field] = value;
        key.token(&claims)
    };
    let without = |field: &str| {
        let mut claims = issuer.claims();
        claims.as_object_mut().unwrap().remove(field);
        key.token(&claims)
    };
    let good = key.token(&issuer.claims());
    let unsigned = {
        use base64::Engine as _;
        let encode = |text: &str| base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(text);
        format!(
            "{}.{}.",
            encode(r#"{"alg":"none","typ":"JWT"}"#),
            encode(&issuer.claims().to_string())
        )
    };
    let symmetric = {
        let public = serde_json::to_vec(&key.public()).unwrap();
        let header = Header {
            kid: Some("one".to_owned()),
            ..Header::new(Algorithm::HS256)
        };
        encode(&header, &issuer.claims(), &EncodingKey::from_secret(&public)).unwrap()
    };
    let nameless_client = {
        let mut claims = issuer.claims();
        claims["client_id"] = json!("");
        claims.as_object_mut().unwrap().remove("sub");
        key.token(&claims)
    };
    let critical = {
        let header = Header {
            kid: Some("one".to_owned()),
            crit: Some(vec!["exp".to_owned()]),
            ..Header::new(Algorithm::ES256)
        };
        encode(&header, &issuer.claims(), &key.signing()).unwrap()
    };
    let stranger = Key {
        id: "one".to_owned(),
        ..Key::new("x")
    };
    let table = [
        (with("exp", json!(now() - 600)), 401, "expired"),
        (with("nbf", json!(now() + 600)), 401, "not valid yet"),
        (
            with("aud", json!("https://other.example.com")),
            401,
            "another server",
        ),
        (
            with("iss", json!("https://other.example.com")),
            401,
            "another issuer",
        ),
        (without("exp"), 401, "lacks a required claim"),
        (without("aud"), 401, "lacks a required claim"),
        (without("iss"), 401, "lacks a required claim"),
        (with("iss", json!([issuer.url])), 401, "malformed"),
        (without("sub"), 401, "names no client"),
        (with("sub", json!("")), 401, "names no client"),
        (nameless_client, 401, "names no client"),
        (critical, 401, "an extension"),
        (with("scope", json!("other")), 403, "insufficient_scope"),
        (stranger.token(&issuer.claims()), 401, "signature is wrong"),
        (
            Key::new("two").token(&issuer.claims()),
            401,
            "key the issuer does not have",
        ),
        (good[..good.len() - 4].to_owned(), 401, "invalid_token"),
        (good[..good.rfind('.').unwrap()].to_owned(), 401, "not a JWT"),
        (unsigned, 401, "not a JWT"),
        (symmetric, 401, "algorithm is not accepted"),
        ("nonsense".to_owned(), 401, "not a JWT"),
    ];
    for (token, status, expected) in table {
        let (found, challenge) = try_in(&bridge, &token).await;
        assert_eq!(found, status, "{expected}: {challenge}");
        assert!(challenge.contains(expected), "{expected}: {challenge}");
        let metadata =
            "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";
        assert!(challenge.contains(metadata), "{challenge}");
    }
    assert_eq!(
        std::fs::read_to_string(starts.path()).unwrap(),
        "",
        "none of them reached a child"
    );
    assert_eq!(try_in(&bridge, &good).await.0, StatusCode::OK);
    bridge.stop().await;
}

#[tokio::test]
async fn the_metadata_names_the_issuer() {
    let issuer = Issuer::start(&Key::new("one")).await;
    let (bridge, _starts) = issuer.bridge().await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let metadata: Value = bridge
            .client()
            .http
            .get(bridge.url(path))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        assert_eq!(metadata["resource"], RESOURCE);
        assert_eq!(metadata["authorization_servers"], json!([issuer.url]));
    }
    bridge.stop().await;
}

#[tokio::test]
async fn the_metadata_is_where_the_challenge_says() {
    let bridge = Bridge::start(&[], |settings| {
        settings.auth = AuthSettings::OAuth(OAuthSettings {
            operator_scope: None,
            metrics_scope: None,
            issuer: "https://auth.example.com".to_owned(),
            resource: "https://tools.example.com/api/mcp".to_owned(),
            required_scopes: Vec::new(),
        });
    })
    .await;
    let (_, challenge) = try_in(&bridge, "x").await;
    let (_, address) = challenge.split_once("https://tools.example.com").unwrap();
    let path = address.trim_end_matches('"');
    assert_eq!(path, "/.well-known/oauth-protected-resource/api/mcp");
    for (path, status) in [(path, 200), ("/.well-known/oauth-protected-resource/other", 404)] {
        let response = bridge.client().http.get(bridge.url(path)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
    }
    bridge.stop().await;
}

#[tokio::test]
async fn scopes_make_operators_and_readers_of_metrics_and_all_others_are_agents() {
    let key = Key::new("one");
    let issuer = Issuer::start(&key).await;
    let bridge = Bridge::start(&[], |settings| {
        settings.metrics = true;
        settings.auth = AuthSettings::OAuth(OAuthSettings {
            operator_scope: Some("mcp:operate".to_owned()),
            metrics_scope: Some("mcp:metrics".to_owned()),
            issuer: issuer.url.clone(),
            resource: RESOURCE.to_owned(),
            required_scopes: Vec::new(),
        });
    })
    .await;
    for (scope, tools, admin, metrics) in [
        ("mcp:use", 200, 403, 200),
        ("mcp:use mcp:operate", 403, 200, 200),
        ("mcp:metrics", 403, 403, 200),
    ] {
        let mut claims = issuer.claims();
        claims["scope"] = json!(scope);
        let token = key.token(&claims);
        let get = async |path: &str| {
            let request = reqwest::Client::new().get(bridge.url(path)).bearer_auth(&token);
            request.send().await.unwrap().status().as_u16()
        };
        let found = (
            try_in(&bridge, &token).await.0.as_u16(),
            get("/admin/v1/sessions").await,
            get("/metrics").await,
        );
        assert_eq!(found, (tools, admin, metrics), "{scope}");
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_user_and_a_client_of_one_name_are_two_and_each_has_its_cap() {
    let key = Key::new("one");
    let issuer = Issuer::start(&key).await;
    let bridge = Bridge::start(&[], |settings| {
        settings.auth = AuthSettings::OAuth(OAuthSettings {
            operator_scope: None,
            metrics_scope: None,
            issuer: issuer.url.clone(),
            resource: RESOURCE.to_owned(),
            required_scopes: Vec::new(),
        });
        settings.limits.sessions_per_principal = 1;
    })
    .await;
    let mut claims = issuer.claims();
    let user = key.token(&claims);
    claims["client_id"] = claims["sub"].take();
    let client = key.token(&claims);
    for token in [user, client] {
        assert_eq!(try_in(&bridge, &token).await.0, StatusCode::OK);
        assert_eq!(try_in(&bridge, &token).await.0, StatusCode::SERVICE_UNAVAILABLE);
    }
    bridge.stop().await;
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_found_and_an_old_one_forgotten() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let issuer = Issuer::start(&old).await;
    let (bridge, _starts) = issuer.bridge().await;
    assert_eq!(
        try_in(&bridge, &old.token(&issuer.claims())).await.0,
        StatusCode::OK
    );
    *issuer.keys.lock().unwrap() = json!({ "keys": [new.public()] });
    crate::harness::eventually("the new key", async || {
        try_in(&bridge, &new.token(&issuer.claims())).await.0 == StatusCode::OK
    })
    .await;
    assert_eq!(
        try_in(&bridge, &old.token(&issuer.claims())).await.0,
        StatusCode::UNAUTHORIZED
    );
    bridge.stop().await;
}

#[tokio::test]
async fn without_the_issuers_keys_no_client_is_admitted() {
    let key = Key::new("one");
    let issuer = Issuer::start(&key).await;
    let (bridge, _starts) = issuer.bridge().await;
    let token = key.token(&issuer.claims());
    issuer.server.abort();
    *issuer.keys.lock().unwrap() = json!({ "keys": [] });
    crate::harness::eventually("the issuer to be gone", async || {
        try_in(&bridge, &token).await.0 == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    bridge.stop().await;
}

#[tokio::test]
async fn a_token_that_names_no_key_is_tried_with_all_that_fit() {
    let (other, key) = (Key::new("one"), Key::new("two"));
    // The right one, but it says that it is for something else.
    let mut encrypting = serde_json::to_value(key.public()).unwrap();
    encrypting["alg"] = json!("RSA-OAEP");
    let on_another_curve = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let on_another_curve = EncodingKey::from_ec_der(&on_another_curve.serialize_der());
    let mut on_another_curve = Jwk::from_encoding_key(&on_another_curve, Algorithm::ES384).unwrap();
    on_another_curve.common.key_algorithm = None;
    for (keys, status) in [
        (json!([on_another_curve, key.public()]), StatusCode::OK),
        (json!([on_another_curve]), StatusCode::UNAUTHORIZED),
        (json!([other.public(), encrypting]), StatusCode::UNAUTHORIZED),
        (json!([other.public(), key.public()]), StatusCode::OK),
    ] {
        let issuer = Issuer::start(&other).await;
        *issuer.keys.lock().unwrap() = json!({ "keys": keys });
        let (bridge, _starts) = issuer.bridge().await;
        let nameless = encode(&Header::new(Algorithm::ES256), &issuer.claims(), &key.signing()).unwrap();
        let (found, why) = try_in(&bridge, &nameless).await;
        assert_eq!(found, status, "{why}");
        bridge.stop().await;
    }
}

#[tokio::test]
async fn a_crowd_does_not_ask_an_issuer_that_does_not_answer_one_by_one() {
    const CROWD: usize = 8;
    let key = Key::new("one");
    let mut issuer = Issuer::start(&key).await;
    issuer.server.abort();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    issuer.url = format!("http://{}", listener.local_addr().unwrap());
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&visits);
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(stream);
        }
    });
    let (bridge, _starts) = issuer.bridge().await;
    let token = key.token(&issuer.claims());
    let crowd = futures::future::join_all((0..CROWD).map(|_| try_in(&bridge, &token))).await;
    assert!(
        crowd
            .iter()
            .all(|(status, _)| *status == StatusCode::SERVICE_UNAVAILABLE)
    );
    let visits = visits.load(Ordering::Relaxed);
    assert!((1..CROWD).contains(&visits), "{visits}");
    server.abort();
    bridge.stop().await;
}
