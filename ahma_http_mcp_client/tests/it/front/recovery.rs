//! Servers that restart, stay away or revoke a login.

use std::sync::{Arc, atomic::Ordering};

use ahma_http_mcp_client::{ClientSettings, FrontNews, LoginMode, logout};

use super::client::{Client, call_until, leave, start, start_with};
use crate::{
    fixture::{
        auth::{AuthHost, Manners},
        eventually,
        host::Host,
        server, settings,
        tools::{Era, Shared, router},
    },
    login::{browse, endpoint, log_in},
    programs::program,
    remote::call_of,
};

#[tokio::test]
async fn changes_and_restarts_reach_the_client() {
    for server_era in [Era::Legacy, Era::Modern] {
        let shared = Arc::new(Shared::default());
        let host = Host::start(|_| router(server_era, &shared));
        let address = host.address;
        let client = Client::default();
        let (service, front, _dir) = start(&host.url("/mcp"), Era::Legacy, &client).await;
        eventually("a listener", || shared.has_listener().then_some(())).await;
        shared.grow().await;
        eventually("the change", || {
            (client.tools_changed.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        assert_eq!(service.list_all_tools().await.unwrap().len(), 4);
        host.kill();
        let _next_life = Host::start_at(address, |_| router(server_era, &shared));
        // Calls may have gone out on connections that were dying; a client would say so and try again.
        let again = async {
            let call = || service.call_tool(call_of("echo", serde_json::json!({"text": "again"})));
            while call().await.is_err() {}
        };
        tokio::time::timeout(test_support::TEST_TIMEOUT, again)
            .await
            .unwrap_or_else(|_| panic!("{server_era:?}: no call is answered"));
        leave(service, front).await;
    }
}

#[tokio::test]
async fn a_front_outlives_its_server_and_says_what_is_the_matter() {
    for server_era in [Era::Legacy, Era::Modern] {
        let host = Host::start(|_| router(server_era, &Arc::default()));
        let address = host.address;
        let dir = tempfile::tempdir().unwrap();
        let mut settings = settings(&dir);
        settings.retry.max_retries = 1;
        let config = server("r", &host.url("/mcp"));
        let (service, front) = start_with(config, settings, Era::Legacy, &Client::default(), |_| ()).await;
        host.kill();
        call_until(&service, "the reason", |answer| {
            answer.is_err_and(|error| error.contains("is not available: cannot connect to server `r`"))
        })
        .await;
        assert!(!front.is_finished());
        let _next_life = Host::start_at(address, |_| router(server_era, &Arc::default()));
        call_until(&service, "the next life", |answer| answer.is_ok()).await;
        leave(service, front).await;
    }
}

#[tokio::test]
async fn a_login_that_is_revoked_is_asked_for_again_and_may_be_made_elsewhere() {
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let settings = ClientSettings {
        login: LoginMode::Link,
        ..settings(&dir)
    };
    let tokens = settings.tokens.clone();
    log_in(&endpoint(&auth), &tokens).await.0.unwrap();
    let (links, mut shown) = tokio::sync::mpsc::unbounded_channel();
    let tell = move |news: FrontNews<'_>| {
        if let FrontNews::LoginRequired(link) = news {
            links.send(link.clone()).unwrap();
        }
    };
    let config = server("r", &auth.url());
    let (service, front) = start_with(config, settings, Era::Legacy, &Client::default(), tell).await;
    call_until(&service, "an answer", |answer| answer.is_ok()).await;

    auth.ledger.lock().unwrap().revoke_all();
    call_until(&service, "the link", |answer| {
        answer.is_err_and(|error| error.contains("requires a login: open http://"))
    })
    .await;
    assert_eq!(browse(shown.recv().await.unwrap()).await.unwrap().0, 200);
    call_until(&service, "the new login", |answer| answer.is_ok()).await;

    auth.ledger.lock().unwrap().revoke_all();
    logout(&endpoint(&auth), &tokens).await.unwrap();
    call_until(&service, "the next link", |answer| answer.is_err()).await;
    shown.recv().await.unwrap();
    log_in(&endpoint(&auth), &tokens).await.0.unwrap();
    call_until(&service, "the login elsewhere", |answer| answer.is_ok()).await;
    leave(service, front).await;
}

/// Of the modern era; acknowledges no subscription, and ends when it is told to.
const UNACKNOWLEDGING: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$1"; }
  case "$line" in
    *'"server/discover"'*) answer '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"';;
    *'"tools/call"'*'"die"'*) exit 3;;
    *'"tools/call"'*) answer '"content":[]';;
  esac
done
"#;

#[tokio::test]
async fn a_server_that_acknowledges_no_subscription_is_missed_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let config = program("sh", UNACKNOWLEDGING, dir.path());
    let (service, front) = start_with(config, settings(&dir), Era::Legacy, &Client::default(), |_| ()).await;
    call_until(&service, "an answer", |answer| answer.is_ok()).await;
    let lost = service.call_tool(call_of("die", serde_json::json!({}))).await;
    let lost = lost.unwrap_err().to_string();
    assert!(lost.contains("may or may not have run"), "{lost}");
    call_until(&service, "the next life", |answer| answer.is_ok()).await;
    leave(service, front).await;
}
