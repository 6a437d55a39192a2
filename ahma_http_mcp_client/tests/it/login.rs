//! Logging in, as a user with a browser does, and what must not count as a login.

use ahma_http_mcp_client::{
    Browser, LoginError, LoginMode, LoginOptions, RemoteError, RemoteServers, ServerState, TokenFile,
    config::{HttpEndpoint, Secret},
    inspect, login, logout,
};
use url::Url;

use crate::fixture::{
    auth::{AuthHost, Manners},
    ready, server, settings, until,
};

/// The page that the user's browser shows at the end.
pub(crate) type Page = tokio::task::JoinHandle<(u16, String)>;

fn options() -> LoginOptions {
    LoginOptions {
        browser: Browser::Leave,
        ..LoginOptions::default()
    }
}

/// Follows a link as a browser would.
pub(crate) fn browse(link: Url) -> Page {
    tokio::spawn(async move {
        let page = client().get(link).send().await.unwrap();
        (page.status().as_u16(), page.text().await.unwrap())
    })
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Logs in; the "user" does nothing but follow the link.
pub(crate) async fn log_in(
    endpoint: &HttpEndpoint,
    tokens: &TokenFile,
) -> (Result<(), LoginError>, (u16, String)) {
    // The callback ports are the machine's: logins of different tests take turns.
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = TURN.lock().await;
    let mut page = None;
    let result = login(endpoint, tokens, &options(), |link| {
        page = Some(browse(link.clone()))
    })
    .await;
    let page = match page {
        Some(page) => page.await.unwrap(),
        None => (0, String::new()),
    };
    (result, page)
}

pub(crate) fn endpoint(auth: &AuthHost) -> HttpEndpoint {
    HttpEndpoint::new(auth.url().parse().unwrap())
}

#[tokio::test]
async fn after_the_first_login_no_browser_is_needed_until_logout() {
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir);
    let config = server("jira", &auth.url());
    let refused = inspect(&config, &settings).await.unwrap_err();
    assert!(
        matches!(refused, RemoteError::LoginRequired { .. }),
        "{refused:?}"
    );
    assert_eq!(
        refused.to_string(),
        "remote server `jira` requires a login: run `ahma_mcp login jira`"
    );

    let (result, page) = log_in(&endpoint(&auth), &settings.tokens).await;
    result.unwrap();
    assert_eq!(page.0, 200);
    assert!(page.1.contains("<h1>You are logged in</h1>"), "{}", page.1);

    for _ in 0..2 {
        let seen = inspect(&config, &settings).await.unwrap();
        assert_eq!(seen.tools.len(), 3);
        assert_eq!(seen.report.protocol, "2026-07-28");
    }
    {
        let ledger = auth.ledger.lock().unwrap();
        assert_eq!((ledger.logins, ledger.registrations, ledger.refreshes), (1, 1, 0));
    }
    assert!(logout(&endpoint(&auth), &settings.tokens).await.unwrap());
    assert!(!logout(&endpoint(&auth), &settings.tokens).await.unwrap());
    assert!(matches!(
        inspect(&config, &settings).await,
        Err(RemoteError::LoginRequired { .. })
    ));
}

#[tokio::test]
async fn a_running_client_notices_a_login_elsewhere_and_offers_a_link_itself() {
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let quiet = settings(&dir);
    let servers = RemoteServers::start(vec![server("jira", &auth.url())], quiet.clone());
    let waits = |state: &ServerState| matches!(state, ServerState::LoginRequired { .. });
    until(&servers, "jira", "the request to log in", waits).await;
    let error = servers
        .call(
            "jira",
            rmcp::model::CallToolRequestParams::new("echo"),
            None,
            &Default::default(),
        )
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "remote server `jira` requires a login: run `ahma_mcp login jira`"
    );
    log_in(&endpoint(&auth), &quiet.tokens).await.0.unwrap();
    ready(&servers, "jira").await;
    servers.shutdown().await;

    logout(&endpoint(&auth), &quiet.tokens).await.unwrap();
    let offering = ahma_http_mcp_client::ClientSettings {
        login: LoginMode::Link,
        ..quiet
    };
    let servers = RemoteServers::start(vec![server("jira", &auth.url())], offering);
    let offers = |state: &ServerState| matches!(state, ServerState::LoginRequired { link: Some(_), .. });
    let ServerState::LoginRequired { link: Some(link), .. } = until(&servers, "jira", "a link", offers).await
    else {
        unreachable!()
    };
    assert_eq!(browse(link).await.unwrap().0, 200);
    ready(&servers, "jira").await;
    servers.shutdown().await;
}

#[tokio::test]
async fn answers_that_cannot_be_trusted_are_refused() {
    let evil = || Some("https://evil.example".to_owned());
    let cases = [
        (
            Manners {
                callback_issuer: evil(),
                ..Manners::default()
            },
            "issuer mismatch",
        ),
        (
            Manners {
                metadata_issuer: evil(),
                ..Manners::default()
            },
            "cannot prepare a login",
        ),
        (
            Manners {
                refuse: Some("access_denied".to_owned()),
                ..Manners::default()
            },
            "refused: access_denied",
        ),
    ];
    for (manners, expected) in cases {
        let auth = AuthHost::start(manners);
        let dir = tempfile::tempdir().unwrap();
        let tokens = settings(&dir).tokens;
        let (result, page) = log_in(&endpoint(&auth), &tokens).await;
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(page.0 == 0 || page.0 == 400, "the user is told: {page:?}");
        assert!(!tokens.path().exists(), "{expected}: a token was stored");
    }
}

#[tokio::test]
async fn a_token_file_that_cannot_be_used_is_the_only_thing_complained_about() {
    let auth = AuthHost::start(Manners::default());
    let dir = tempfile::tempdir().unwrap();
    let nowhere = TokenFile::at(dir.path().join("missing/tokens.json"));
    let error = log_in(&endpoint(&auth), &nowhere).await.0.unwrap_err();
    assert!(matches!(error, LoginError::Tokens(_)), "{error:?}");
    let damaged = settings(&dir);
    std::fs::write(damaged.tokens.path(), "not json").unwrap();
    let error = log_in(&endpoint(&auth), &damaged.tokens).await.0.unwrap_err();
    assert!(matches!(error, LoginError::Tokens(_)), "{error:?}");
    {
        let ledger = auth.ledger.lock().unwrap();
        assert_eq!(
            (ledger.registrations, ledger.logins),
            (0, 0),
            "no request was refused"
        );
    }
    let error = inspect(&server("jira", &auth.url()), &damaged).await.unwrap_err();
    assert!(matches!(error, RemoteError::TokenFile { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("is damaged; remove it and log in again"),
        "{error}"
    );
}

#[tokio::test]
async fn a_visit_without_our_state_does_not_end_the_login() {
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let tokens = settings(&dir).tokens;
    let mut endpoint = endpoint(&auth);
    endpoint.oauth.callback_port = Some(test_support::quiet_port());
    let port = endpoint.oauth.callback_port.unwrap();
    let mut pages = None;
    let result = login(&endpoint, &tokens, &options(), |link| {
        let link = link.clone();
        pages = Some(tokio::spawn(async move {
            let callback = format!("http://localhost:{port}/callback");
            let forged = browse(format!("{callback}?code=x&state=wrong").parse().unwrap())
                .await
                .unwrap();
            let denied = browse(
                format!("{callback}?error=access_denied&state=wrong")
                    .parse()
                    .unwrap(),
            )
            .await
            .unwrap();
            let stray = browse(format!("http://localhost:{port}/favicon.ico").parse().unwrap())
                .await
                .unwrap();
            let real = browse(link).await.unwrap();
            [forged.0, denied.0, stray.0, real.0]
        }));
    })
    .await;
    result.unwrap();
    assert_eq!(pages.unwrap().await.unwrap(), [400, 400, 404, 200]);
    assert_eq!(auth.ledger.lock().unwrap().logins, 1);
}

#[tokio::test]
async fn a_registered_client_uses_its_secret_and_its_port_only() {
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        only_client: Some(("me".to_owned(), "hush".to_owned())),
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let tokens = settings(&dir).tokens;
    let unknown = log_in(&endpoint(&auth), &tokens).await.0.unwrap_err().to_string();
    assert!(unknown.contains("set `client_id`"), "{unknown}");

    let mut registered = endpoint(&auth);
    registered.oauth.client_id = Some("me".to_owned());
    registered.oauth.client_secret = Some(Secret::new("hush"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    registered.oauth.callback_port = Some(taken.local_addr().unwrap().port());
    let busy = log_in(&registered, &tokens).await.0.unwrap_err();
    assert!(matches!(busy, LoginError::CallbackPort { .. }), "{busy:?}");

    let port = test_support::quiet_port();
    registered.oauth.callback_port = Some(port);
    log_in(&registered, &tokens).await.0.unwrap();
    let file = dir.path().join("tokens.json");
    let keeps_quiet = || !std::fs::read_to_string(&file).unwrap().contains("hush");
    assert!(keeps_quiet(), "what is configured stays in the configuration");
    let sent = auth.ledger.lock().unwrap().redirect_uri.clone();
    assert_eq!(sent, format!("http://localhost:{port}"), "as people register it");
    // The secret is needed again, for the refresh.
    auth.ledger.lock().unwrap().revoke_access();
    let mut config = server("jira", &auth.url());
    config.http = Some(registered);
    let again = ahma_http_mcp_client::ClientSettings {
        tokens,
        ..settings(&dir)
    };
    inspect(&config, &again).await.unwrap();
    assert_eq!(auth.ledger.lock().unwrap().refreshes, 1);
    assert!(keeps_quiet());
}

/// Needs Chromium; the same steps without a browser are in the other tests.
#[tokio::test]
async fn a_real_browser_walks_through_the_login() {
    if !test_support::needs("chromium", &["--version"], "apt install chromium") {
        return;
    }
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir);
    let mut browser = None;
    let profile = dir.path().join("profile");
    login(&endpoint(&auth), &settings.tokens, &options(), |link| {
        let child = std::process::Command::new("timeout")
            .args(["300", "chromium"])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(link.as_str())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        browser = Some(child);
    })
    .await
    .unwrap();
    let page = tokio::task::spawn_blocking(move || browser.unwrap().wait_with_output().unwrap())
        .await
        .unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.contains("<h1>You are logged in</h1>"), "{page}");
    assert_eq!(
        inspect(&server("jira", &auth.url()), &settings)
            .await
            .unwrap()
            .tools
            .len(),
        3
    );
}

#[tokio::test]
async fn a_server_that_dies_during_the_login_is_reported_and_nothing_is_stored() {
    let auth = AuthHost::start(Manners::default());
    let dir = tempfile::tempdir().unwrap();
    let tokens = settings(&dir).tokens;
    let mut endpoint = endpoint(&auth);
    endpoint.oauth.callback_port = Some(test_support::quiet_port());
    let mut page = None;
    let result = login(&endpoint, &tokens, &options(), |link| {
        let value = |name| {
            link.query_pairs()
                .find(|(key, _)| key == name)
                .unwrap()
                .1
                .into_owned()
        };
        let mut callback: Url = value("redirect_uri").parse().unwrap();
        let issuer = auth.host.url("");
        callback
            .query_pairs_mut()
            .append_pair("code", "c")
            .append_pair("iss", &issuer);
        callback.query_pairs_mut().append_pair("state", &value("state"));
        auth.host.kill();
        page = Some(browse(callback));
    })
    .await;
    let error = result.unwrap_err();
    assert!(matches!(error, LoginError::Callback { .. }), "{error:?}");
    assert_eq!(page.unwrap().await.unwrap().0, 400);
    assert!(!tokens.path().exists());
}

#[tokio::test]
async fn an_unused_link_and_plain_http_end_cleanly() {
    let auth = AuthHost::start(Manners::default());
    let dir = tempfile::tempdir().unwrap();
    let tokens = settings(&dir).tokens;
    let mut endpoint = endpoint(&auth);
    endpoint.oauth.callback_port = Some(test_support::quiet_port());
    let brief = LoginOptions {
        timeout: std::time::Duration::from_millis(50),
        ..options()
    };
    let error = login(&endpoint, &tokens, &brief, |_| ()).await.unwrap_err();
    assert!(matches!(error, LoginError::TimedOut { .. }), "{error:?}");
    let open = HttpEndpoint::new("http://mcp.example.com/mcp".parse().unwrap());
    let error = login(&open, &tokens, &options(), |_| ()).await.unwrap_err();
    assert!(matches!(error, LoginError::Insecure { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_calls_that_are_refused_at_once_lead_to_one_login() {
    let auth = AuthHost::start(Manners {
        expires_in: 3600,
        ..Manners::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let settings = ahma_http_mcp_client::ClientSettings {
        login: LoginMode::Link,
        ..settings(&dir)
    };
    log_in(&endpoint(&auth), &settings.tokens).await.0.unwrap();
    let servers = RemoteServers::start(vec![server("jira", &auth.url())], settings);
    ready(&servers, "jira").await;
    let never = Default::default();
    let echo = || rmcp::model::CallToolRequestParams::new("echo");
    let offers = |state: &ServerState| matches!(state, ServerState::LoginRequired { link: Some(_), .. });
    // Who is first is a matter of luck, so it is tried a few times.
    for round in 1..=5 {
        auth.ledger.lock().unwrap().revoke_all();
        let calls = (0..64).map(|_| servers.call("jira", echo(), None, &never));
        // Those that are still under way when the connection is closed are lost with it.
        for answer in futures::future::join_all(calls).await {
            answer.unwrap_err();
        }
        let ServerState::LoginRequired { link: Some(link), .. } =
            until(&servers, "jira", "a link", offers).await
        else {
            unreachable!()
        };
        assert_eq!(browse(link).await.unwrap().0, 200);
        ready(&servers, "jira").await;
        servers.call("jira", echo(), None, &never).await.unwrap();
        assert_eq!(auth.ledger.lock().unwrap().logins, 1 + round);
    }
    servers.shutdown().await;
}
