//! The console in a real browser, as a person uses it: `tests/console/console.mjs` is the hands and eyes.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{Client, Era, HttpServer, Roots, Workspace, needs, test_programs, wait_for};

use crate::{
    console::{Console, HOSTILE},
    live::scanner,
    session::options,
};

const CHROMIUM: &str = "/usr/bin/chromium";

/// A browser with the console open. Screenshots are kept in the target directory.
struct Browser {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    _profile: TempDir,
}

impl Browser {
    /// None where there is no browser.
    fn open(name: &str, link: &str) -> Option<Self> {
        let node = test_programs().join("node_modules/.bin/node");
        if !needs(CHROMIUM, &["--version"], "apt install chromium")
            || !needs(&node, &["--version"], "scripts/test-programs")
        {
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let given = json!({
            "link": link,
            "chromium": CHROMIUM,
            "profile": profile.path(),
            "screenshots": screenshots(name),
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/console/console.mjs");
        // By its real path, beside which what it needs is installed.
        let mut process = Command::new(node.canonicalize().unwrap())
            .arg(script)
            .arg(given.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut browser = Self {
            orders: process.stdin.take(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
            _profile: profile,
        };
        browser.order(json!({"order": "open"}));
        Some(browser)
    }

    /// Result of an order. Whatever acts in the page that should not is a failure.
    #[track_caller]
    fn order(&mut self, order: Value) -> Value {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{order}: {line:?}"));
        assert!(
            answer["failed"].is_null(),
            "{}",
            answer["failed"].as_str().unwrap_or_default()
        );
        assert_eq!(answer["troubles"], json!([]), "{order}");
        answer["result"].take()
    }

    /// Waits until this holds in the page, which is not loaded again for it.
    #[track_caller]
    fn until(&mut self, expression: &str) {
        self.order(json!({"order": "until", "expression": expression}));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The end of its orders is the end of it.
        drop(self.orders.take());
        let _ = self.process.wait();
    }
}

fn screenshots(name: &str) -> PathBuf {
    let directory = test_programs().with_file_name("console-screenshots").join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A scan that goes on as files appear.
const SCAN: &str = "echo 10 percent; printf '\\033[32mbegun\\033[0m <b>bold?</b>\\n'
until [ -e half ]; do sleep 0.05; done
echo 50 percent; echo 'hole high CVE-2026-1 at port/80: old server; do update'
sleep 1000
";

/// Starts a long scan, watches it move, cancels it, and finds it again.
fn watch_and_cancel(workspace: &Workspace, client: &mut Client, browser: &mut Browser, who: &str) {
    let started = client.tool(
        "scan",
        json!({"script": "scan.sh", "execution_mode": "asynchronous"}),
    );
    let id = started["structuredContent"]["operation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{started}"));
    // The page that is open shows it, and the percent moves.
    browser.order(json!({"order": "appears", "text": "scan.sh"}));
    browser.until("document.querySelector('#operations progress')?.value === 10");
    browser.order(json!({"order": "follow", "text": "scan.sh"}));
    browser.until("document.querySelector('#output .f2')?.textContent === 'begun'");
    let before = browser.order(json!({"order": "look"}));
    assert_eq!(before["percent"], 10.0, "{before}");
    assert_eq!(before["findings"], 0, "{before}");
    fs::write(workspace.scope().join("half"), "").unwrap();
    browser.until("document.querySelector('#summary progress')?.value === 50");
    browser.until("document.querySelectorAll('#findings tbody tr').length === 1");
    browser.until("document.querySelector('#output > div:last-child').textContent.includes('old server')");
    let after = browser.order(json!({"order": "look"}));
    assert_eq!(
        after["since"], before["since"],
        "the page was loaded again: {after}"
    );

    let summary = browser.order(json!({"order": "cancel", "reason": "seen enough"}));
    assert!(
        summary
            .as_str()
            .unwrap()
            .contains(&format!("the operator {who} cancelled it: seen enough")),
        "{summary}"
    );
    let told = client
        .tool("await", json!({"operation_ids": [id], "timeout_seconds": 30}))
        .to_string();
    assert!(told.contains("seen enough"), "{told}");
    let found = browser.order(json!({"order": "find", "text": "scan.sh"}));
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert!(found[0].as_str().unwrap().contains("1 high"), "{found}");
    let sarif = browser.order(json!({"order": "download", "text": "scan.sh", "form": "SARIF"}));
    let sarif: Value = serde_json::from_str(sarif.as_str().unwrap()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "CVE-2026-1", "{sarif}");
}

/// Output that grows follows its end, but for a reader who paused it; all by the keyboard up to there.
fn follow_and_pause(workspace: &Workspace, client: &mut Client, browser: &mut Browser) {
    const AT_END: &str = "(() => { const { scrollTop, clientHeight, scrollHeight } = document.getElementById('output'); \
                          return scrollTop + clientHeight > scrollHeight - 8; })()";
    let command = "seq 500; until [ -e more ]; do sleep 0.05; done; seq 501 900; sleep 1000";
    let start = |client: &mut Client, command: &str| {
        let arguments = json!({"command": command, "execution_mode": "asynchronous"});
        let started = client.tool("sandboxed_shell", arguments);
        started["structuredContent"]["operation_id"].clone()
    };
    let id = start(client, command);
    browser.order(json!({"order": "visit", "where": "/"}));
    browser.order(json!({"order": "appears", "text": command}));
    // What comes up above does not take the focus away.
    browser.order(json!({"order": "focus", "text": command}));
    let other = start(client, "sleep 999");
    browser.order(json!({"order": "appears", "text": "sleep 999"}));
    browser.until(&format!("document.activeElement.textContent === '{command}'"));
    client.tool("cancel", json!({"operation_id": other}));
    browser.until(
        "![...document.querySelectorAll('#operations a')].some((link) => link.textContent === 'sleep 999')",
    );
    browser.until(&format!("document.activeElement.textContent === '{command}'"));
    browser.order(json!({"order": "walk", "where": "/", "to": command}));
    let last =
        |line: u32| format!("document.querySelector('#output > div:last-child')?.textContent === '{line}'");
    browser.until(&last(500));
    browser.until(AT_END);
    browser.order(json!({"order": "press", "button": "Pause"}));
    fs::write(workspace.scope().join("more"), "").unwrap();
    browser.until(&last(900));
    browser.until(&format!("!{AT_END}"));
    browser.order(json!({"order": "press", "button": "Follow"}));
    browser.until(AT_END);
    browser.until("document.getElementById('live').textContent === 'Live'");
    // One who reads by the keyboard is not taken to the end again, nor by the end of the operation.
    browser.order(json!({"order": "key", "key": "PageUp"}));
    browser.until("document.getElementById('follow').textContent === 'Follow'");
    let before = browser.order(json!({"order": "look"}));
    client.tool("cancel", json!({"operation_id": id}));
    browser.until("document.getElementById('live').textContent === 'Ended'");
    let after = browser.order(json!({"order": "look"}));
    assert_eq!(after["state"], "cancelled", "{after}");
    assert_eq!(
        after["since"], before["since"],
        "the page was loaded again: {after}"
    );
}

fn scanning() -> Workspace {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &scanner());
    fs::write(workspace.scope().join("scan.sh"), SCAN).unwrap();
    workspace
}

#[test]
fn a_person_watches_and_cancels_what_a_client_runs_over_http() {
    let workspace = scanning();
    let server = HttpServer::start(&options(&workspace).args(["--mode", "http", "--http-port", "0"]));
    let Some(mut browser) = Browser::open("http", &format!("http://{}/", server.address())) else {
        return;
    };
    let mut client = server.session(Roots::None);
    browser.until("document.querySelectorAll('#sessions tbody tr').length === 1");
    watch_and_cancel(&workspace, &mut client, &mut browser, "anonymous");
}

#[test]
fn a_person_watches_and_cancels_what_another_process_serves_on_stdio() {
    let workspace = scanning();
    fs::write(workspace.tools().join("broken.json"), "{\n  \"name\": 7\n}").unwrap();
    let console = Console::open(&workspace);
    let link = format!("http://{}{}", console.address, console.link);
    let Some(mut browser) = Browser::open("stdio", &link) else {
        return;
    };
    let mut client = options(&workspace).open(Era::Legacy);
    browser.until("document.querySelectorAll('#servers tbody tr').length === 1");
    watch_and_cancel(&workspace, &mut client, &mut browser, "tester");

    fs::write(workspace.scope().join("hostile"), HOSTILE.join("\n") + "\nend\n").unwrap();
    let started = client.tool(
        "sandboxed_shell",
        json!({"command": "cat hostile; sleep 1000", "execution_mode": "asynchronous"}),
    );
    let id = started["structuredContent"]["operation_id"].as_str().unwrap();
    let path = format!("/console/operations/{id}");
    // As it comes, and as it was; nothing of it runs or becomes an element.
    let page = wait_for("the output", || {
        let page = browser.order(json!({"order": "visit", "where": path}));
        page["text"].as_str().unwrap().contains("end").then_some(page)
    });
    assert_eq!(
        json!([page["elements"], page["headings"]]),
        json!([0, 1]),
        "{page}"
    );
    assert!(
        page["title"].as_str().unwrap().starts_with("sandboxed_shell op_"),
        "{page}"
    );
    let text = page["text"].as_str().unwrap();
    for shown in [
        "<script>document.title='run'</script>",
        "<h1>gone</h1>",
        "U+202E",
        "click",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    follow_and_pause(&workspace, &mut client, &mut browser);

    let plain = browser.order(json!({"order": "plain", "where": path}));
    for shown in ["<h1>gone</h1>", "this page stands still"] {
        assert!(plain.as_str().unwrap().contains(shown), "{shown}: {plain}");
    }

    let paths = [
        "/",
        &path,
        "/console/history",
        "/console/tools",
        "/console/sandbox",
        "/console/audit",
    ];
    let found = browser.order(json!({"order": "tour", "paths": paths}));
    assert_eq!(found, json!([]), "{found:#}");
    let mistakes = browser.order(json!({"order": "plain", "where": "/console/tools"}));
    assert!(mistakes.as_str().unwrap().contains("broken.json"), "{mistakes}");
}
