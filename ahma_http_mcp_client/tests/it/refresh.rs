//! Tokens that expire, are revoked, or are refreshed by several clients at once.

use ahma_http_mcp_client::{
    Browser, LoginOptions, RemoteError, RemoteServers, TokenFile, config::HttpEndpoint, inspect, login,
};
use rmcp::model::CallToolRequestParams;
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    auth::{AuthHost, Manners},
    ready, server, settings,
};

/// A login whose token runs out at once: every use refreshes.
async fn logged_in(tokens: &TokenFile) -> AuthHost {
    let auth = AuthHost::start(Manners {
        expires_in: 1,
        ..Manners::default()
    });
    let mut endpoint = HttpEndpoint::new(auth.url().parse().unwrap());
    endpoint.oauth.callback_port = Some(test_support::quiet_port());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = LoginOptions {
        browser: Browser::Leave,
        ..LoginOptions::default()
    };
    login(&endpoint, tokens, &options, |link| {
        tokio::spawn(reqwest::get(link.clone()));
    })
    .await
    .unwrap();
    auth
}

#[tokio::test]
async fn an_expired_token_is_refreshed_without_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir);
    let auth = logged_in(&settings.tokens).await;
    assert_eq!(
        inspect(&server("s", &auth.url()), &settings)
            .await
            .unwrap()
            .tools
            .len(),
        3
    );
    let ledger = auth.ledger.lock().unwrap();
    assert!(ledger.refreshes > 0);
    assert_eq!(ledger.logins, 1);
}

#[tokio::test]
async fn a_revoked_login_asks_for_a_new_one_and_forgets_the_old() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir);
    let auth = logged_in(&settings.tokens).await;
    auth.ledger.lock().unwrap().revoke_all();
    let error = inspect(&server("s", &auth.url()), &settings).await.unwrap_err();
    assert!(matches!(error, RemoteError::LoginRequired { .. }), "{error:?}");
    let stored = std::fs::read_to_string(settings.tokens.path()).unwrap();
    assert!(!stored.contains("access-"), "{stored}");
}

#[tokio::test]
async fn many_requests_that_are_refused_at_once_lead_to_one_refresh() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir);
    let auth = logged_in(&settings.tokens).await;
    // Only a refusal leads to a refresh from here on.
    auth.ledger.lock().unwrap().manners.expires_in = 3600;
    let servers = RemoteServers::start(vec![server("s", &auth.url())], settings);
    ready(&servers, "s").await;
    let before = auth.ledger.lock().unwrap().refreshes;
    auth.ledger.lock().unwrap().revoke_access();
    let never = CancellationToken::new();
    let calls = (0..16).map(|_| servers.call("s", CallToolRequestParams::new("echo"), None, &never));
    for answer in futures::future::join_all(calls).await {
        answer.unwrap();
    }
    let ledger = auth.ledger.lock().unwrap();
    assert_eq!(ledger.refreshes - before, 1);
    assert!(!ledger.reuse_seen, "a refresh token was used twice");
}

/// The lock belongs to an open file, not to a process, so threads with clients of their own exclude each other in the
/// same way as processes do.
#[tokio::test]
async fn clients_that_refresh_at_once_do_not_lose_the_token() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir);
    let auth = logged_in(&settings.tokens).await;
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (config, settings) = (server("s", &auth.url()), settings.clone());
            tokio::task::spawn_blocking(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async {
                    for _ in 0..5 {
                        assert_eq!(inspect(&config, &settings).await.unwrap().tools.len(), 3);
                    }
                });
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let ledger = auth.ledger.lock().unwrap();
    assert!(ledger.refreshes >= 4, "only {} refreshes", ledger.refreshes);
    assert!(!ledger.reuse_seen, "a refresh token was used twice");
    assert_eq!(ledger.logins, 1);
}
