//! Power of a page in a real browser over the bridge: none, unless its origin is allowed.

use std::process::Stdio;

use axum::Router;
use axum::extract::State;
use axum::response::Html;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::harness::{BridgeProcess, TEST_TIMEOUT};

/// Names that the browser is made to find on this machine, as a hostile name server would.
const EVIL: &str = "evil.example";
const REBOUND: &str = "rebound.example";

/// Tries to open a session, with and without a preflight, and reports what it saw.
const PAGE: &str = r#"<!doctype html><script>
const attempt = async (type) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: {
        protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "page", version: "1" } } });
    try {
        const headers = { "content-type": type, accept: "application/json" };
        return (await fetch("BRIDGE", { method: "POST", headers, body })).status;
    } catch { return "blocked"; }
};
(async () => {
    const seen = { json: await attempt("application/json"), text: await attempt("text/plain") };
    await fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
})();
</script>"#;

fn chromium() -> Option<&'static str> {
    let found = [
        "/usr/bin/chromium",
        "/usr/bin/chromium-browser",
        "/usr/bin/google-chrome",
    ]
    .into_iter()
    .find(|program| std::path::Path::new(program).exists());
    if found.is_none() {
        test_support::skip("no browser; hint: apt install chromium");
    }
    found
}

/// A browser with a profile of its own, gone when it is dropped.
struct Browser {
    process: Child,
    _profile: TempDir,
}

impl Browser {
    fn open(program: &str, flags: &[&str], address: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!(
                "--host-resolver-rules=MAP {EVIL} 127.0.0.1, MAP {REBOUND} 127.0.0.1"
            ))
            .args(flags)
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            process,
            _profile: profile,
        }
    }
}

/// Serves the page; gives its port and what it reports.
async fn serve_page(bridge: &str) -> (u16, mpsc::Receiver<Value>) {
    let (seen, reports) = mpsc::channel(1);
    let page = PAGE.replace("BRIDGE", bridge);
    let report = async |State(seen): State<mpsc::Sender<Value>>, body: String| {
        seen.send(serde_json::from_str(&body).unwrap()).await.unwrap();
    };
    let router = Router::new()
        .route("/", get(async || Html(page)))
        .route("/seen", post(report))
        .with_state(seen);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (port, reports)
}

#[tokio::test]
async fn a_page_of_another_origin_gets_nowhere() {
    let Some(chromium) = chromium() else { return };
    let directory = tempfile::tempdir().unwrap();
    let audit = directory.path().join("audit.jsonl");
    // A process of its own: what it had started itself, it would take for a command.
    let bridge = BridgeProcess::start(&[], &["--audit-file", audit.to_str().unwrap()]);
    let (port, mut reports) = serve_page(&bridge.url).await;

    for (host, seen) in [
        // A page of this machine may ask; a body that is not called JSON is refused all the same.
        ("127.0.0.1", json!({ "json": 200, "text": 415 })),
        // The refusal is not for the page to read.
        (EVIL, json!({ "json": "blocked", "text": "blocked" })),
    ] {
        let browser = Browser::open(chromium, &[], &format!("http://{host}:{port}/"));
        let report = tokio::time::timeout(TEST_TIMEOUT, reports.recv()).await;
        assert_eq!(report.unwrap().unwrap(), seen, "{host}");
        drop(browser);
    }
    let rebound = bridge.url.replace("127.0.0.1", REBOUND);
    let browser = Browser::open(chromium, &["--dump-dom"], &rebound);
    let output = tokio::time::timeout(TEST_TIMEOUT, browser.process.wait_with_output()).await;
    let page = String::from_utf8_lossy(&output.unwrap().unwrap().stdout).into_owned();
    let name = bridge.address().to_string().replace("127.0.0.1", REBOUND);
    assert!(
        page.contains(&format!("host {name} is not served here")),
        "{page}"
    );
    bridge.stop();

    let lines: Vec<Value> = std::fs::read_to_string(audit)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let refused = |why: &str| {
        let about_it =
            |line: &&Value| line["event"] == "refused" && line["outcome"].to_string().contains(why);
        lines
            .iter()
            .filter(about_it)
            .map(|line| line["status"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(refused("this origin"), [403, 403], "{lines:?}");
    assert!(refused(REBOUND).contains(&json!(403)), "{lines:?}");
    let opened = lines
        .iter()
        .filter(|line| line["event"] == "session_opened")
        .count();
    assert_eq!(opened, 1, "only the page of this machine: {lines:?}");
}
