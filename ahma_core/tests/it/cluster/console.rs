//! The console of a front end: what its pool runs, on which worker, and a button that stops it.

use std::{fs, thread};

use serde_json::json;
use test_support::{HttpServer, Roots, wait_for};

use super::{
    admin::{front_end, front_end_with, issue},
    pool::{Cluster, ended, start},
};
use crate::{console::Browser, live::scanning};

fn logged_in(at: &HttpServer, token: &str) -> Browser {
    let mut browser = Browser::new(at.address());
    let login = browser.post("/console/login", &format!("token={token}"));
    assert_eq!(login.status, 303, "{}", login.body);
    browser.take_cookie(&login);
    browser
}

#[test]
fn the_console_of_any_front_end_shows_and_stops_what_the_pool_runs() {
    let Some(cluster) = Cluster::start() else { return };
    let anna = issue(&cluster, "anna", "agent");
    let boss = issue(&cluster, "boss", "operator");
    let worker = cluster.worker_with(&["--label", "gpu"]);
    let said = worker.complaints();
    let (_, name) = said.split_once("worker ").unwrap();
    let (name, _) = name.split_once(" serves pool").unwrap();
    let (one, two) = (front_end(&cluster), front_end(&cluster));
    let mut client = one.session_as(&anna, Roots::None);
    let command =
        "echo '<i>begun</i>'; until [ -e go ]; do sleep 0.1; done; printf 'gone %s\\n' on; sleep 1000";
    let id = start(&mut client, command);

    let browser = logged_in(&two, &boss);
    let (row, page) = wait_for("the row of the operation", || {
        let page = browser.get("/").body;
        let (_, row) = page.split_once(&format!("id=\"row-{id}\""))?;
        let (row, _) = row.split_once("</tr>")?;
        (row.contains("state running") && row.contains(name)).then(|| (row.to_owned(), page.clone()))
    });
    let path = format!("/console/operations/{id}");
    for expected in [
        "sandboxed_shell",
        "sleep 1000",
        "anna",
        &format!("href=\"{path}\""),
    ] {
        assert!(row.contains(expected), "{expected}: {row}");
    }
    let (_, workers) = page.split_once(&format!("id=\"worker-{name}\"")).unwrap();
    let (workers, _) = workers.split_once("</tr>").unwrap();
    assert!(workers.contains("gpu") && workers.contains(">4<"), "{workers}");

    let shown = wait_for("its output", || {
        Some(browser.get(&path).body).filter(|page| page.contains(">&lt;i&gt;begun&lt;/i&gt;<"))
    });
    let events = format!("{path}/events?from_line=2");
    for expected in [
        name,
        "sleep 1000",
        "anna",
        "state running",
        "Cancel",
        "None.",
        &events,
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("<i>begun"), "{shown}");
    let history = browser.get("/console/history").body;
    assert!(
        history.contains("nothing of the pool") && !history.contains("sleep 1000"),
        "{history}"
    );

    let cancel = format!("{path}/cancel");
    assert_eq!(browser.post(&cancel, "reason=forged").status, 403);
    let form = format!("form_token={}&reason=too+loud", browser.form_token());
    // A page that is open gets the line that is new, and ends with the operation.
    let open = {
        let (browser, events) = (browser.clone(), events.clone());
        thread::spawn(move || browser.get(&events).body)
    };
    fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    wait_for("the second line", || {
        browser.get(&path).body.contains(">gone on<").then_some(())
    });
    let cancelled = browser.post(&cancel, &form);
    assert_eq!(cancelled.status, 303, "{}", cancelled.body);
    let open = open.join().unwrap();
    for expected in ["gone on", "\"reload\":true"] {
        assert!(open.contains(expected), "{expected}: {open}");
    }
    assert!(!open.contains("L1\\\""), "{open}");
    let report = ended(&mut client, &id);
    assert_eq!(
        (&report["status"], &report["reason"]),
        (
            &"cancelled".into(),
            &"the operator boss cancelled it: too loud".into()
        )
    );
    wait_for("its end on the page", || {
        let page = browser.get(&path).body;
        [
            "state cancelled",
            "too loud",
            ">&lt;i&gt;begun&lt;/i&gt;<",
            ">gone on<",
        ]
        .iter()
        .all(|expected| page.contains(expected))
        .then(|| assert!(!page.contains(&cancel), "{page}"))
    });
    wait_for("a page without it", || {
        Some(browser.get("/").body).filter(|page| page.contains("Nothing runs in the pool"))
    });
    for path in [
        "/console/operations/op_unknown",
        "/console/operations/op_unknown/events",
    ] {
        assert_eq!(browser.get(path).status, 404, "{path}");
    }
    let unknown = browser.post("/console/operations/op_unknown/cancel", &form);
    assert_eq!(unknown.status, 404, "{}", unknown.body);
}

#[test]
fn progress_and_findings_of_the_pool_are_on_the_pages() {
    let Some(cluster) = Cluster::start() else { return };
    scanning(&cluster.workspace);
    let anna = issue(&cluster, "anna", "agent");
    let boss = issue(&cluster, "boss", "operator");
    let _worker = cluster.worker();
    let at = front_end(&cluster);
    let mut client = at.session_as(&anna, Roots::None);
    wait_for("the tool of the worker", || {
        let tools = client.call("tools/list", json!({})).to_string();
        tools.contains("\"scan\"").then_some(())
    });
    let arguments = json!({"script": "scan.sh", "execution_mode": "asynchronous"});
    let started = client.tool("scan", arguments);
    let id = started["structuredContent"]["operation_id"].as_str();
    let id = id.unwrap_or_else(|| panic!("{started}"));

    let browser = logged_in(&at, &boss);
    wait_for("its progress", || {
        browser.get("/").body.contains("40 %").then_some(())
    });
    let path = format!("/console/operations/{id}");
    let is_shown = |state: &str| {
        let page = browser.get(&path).body;
        [
            &format!("state {state}"),
            "1 high",
            "1 low",
            "old server",
            "CVE-2026-2",
            "port/80",
        ]
        .iter()
        .all(|expected| page.contains(expected))
        .then_some(())
    };
    wait_for("its findings", || is_shown("running"));
    fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    assert_eq!(ended(&mut client, id)["status"], "completed");
    wait_for("its findings at the end", || is_shown("completed"));
}

#[test]
fn a_front_end_that_has_no_process_to_ask_says_so() {
    let Some(cluster) = Cluster::start() else { return };
    let anna = issue(&cluster, "anna", "agent");
    let boss = issue(&cluster, "boss", "operator");
    let _worker = cluster.worker();
    let apart = front_end_with(&cluster, &["--session-isolation"]);
    let browser = logged_in(&apart, &boss);
    let page = wait_for("the worker", || {
        Some(browser.get("/").body).filter(|page| page.contains("id=\"worker-"))
    });
    assert!(page.contains("while a session is open here"), "{page}");

    let other = front_end(&cluster);
    let mut client = other.session_as(&anna, Roots::None);
    let id = start(&mut client, "sleep 1000");
    let _session = apart.session_as(&anna, Roots::One(&cluster.workspace.scope()));
    wait_for("the row of the operation", || {
        browser
            .get("/")
            .body
            .contains(&format!("id=\"row-{id}\""))
            .then_some(())
    });
}
