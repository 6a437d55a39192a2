//! Several clients of one server over HTTP: each is told of what it started.

use std::fs;

use serde_json::json;
use test_support::{HttpServer, Roots, Workspace, wait_for};

use crate::{calls::start, session::options, terminal::is_alive};

fn listening(workspace: &Workspace) -> HttpServer {
    HttpServer::start(&options(workspace).args(["--mode", "http", "--http-port", "0"]))
}

#[test]
fn another_session_of_the_same_principal_lists_its_own_and_finds_the_rest_by_id() {
    let workspace = Workspace::new();
    let server = listening(&workspace);
    let mut mine = server.session(Roots::None);
    let id = start(&mut mine, "echo shared; until test -e go; do sleep 0.02; done");
    for mut other in [
        server.session(Roots::None),
        server.sessionless(),
        server.sse(Roots::None),
    ] {
        let listed = other.tool("status", json!({}));
        assert_eq!(listed["structuredContent"]["operations"], json!([]), "{listed}");
        let waited = other.tool("await", json!({"timeout_seconds": 0}));
        assert!(waited.to_string().contains("nothing to wait for"), "{waited}");
        let printed = wait_for("its output", || {
            let seen = other.tool("output", json!({"operation_id": id}));
            seen["structuredContent"]["text"]
                .as_str()
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        });
        assert_eq!(printed, "shared\n");
    }
    fs::write(workspace.scope().join("go"), "").unwrap();
    let collected = mine.tool("await", json!({}));
    let report = &collected["structuredContent"]["operations"][0];
    assert_eq!(report["output"], "shared\n", "{collected}");
}

#[test]
fn what_a_client_started_ends_with_its_session() {
    let workspace = Workspace::new();
    let server = listening(&workspace);
    let mut other = server.session(Roots::None);
    let kept = start(
        &mut other,
        "echo kept > kept; until test -e go; do sleep 0.02; done",
    );
    let mut mine = server.session(Roots::None);
    // A number that no other process sleeps for.
    let seconds = format!("70000.{}", std::process::id());
    start(&mut mine, &format!("sleep {seconds}"));
    wait_for("the command to run", || is_alive(&seconds).then_some(()));
    drop(mine);
    wait_for("the command to end", || (!is_alive(&seconds)).then_some(()));
    fs::write(workspace.scope().join("go"), "").unwrap();
    let collected = other.tool("await", json!({"operation_ids": [kept]}));
    assert_eq!(
        collected["structuredContent"]["operations"][0]["status"], "completed",
        "{collected}"
    );
}

#[test]
fn a_session_that_subscribed_hears_of_its_own_operations_only() {
    let workspace = Workspace::new();
    let server = listening(&workspace);
    let mut clients = [server.session(Roots::None), server.session(Roots::None)];
    for client in &mut clients {
        client.call("resources/subscribe", json!({"uri": "ahma://operations"}));
    }
    // An update of the first one's operation would be the first that the second hears.
    let names = clients.each_mut().map(|client| {
        start(client, "true");
        let told = client.notification("notifications/resources/updated");
        told["params"]["_meta"]["ahma/client"].clone()
    });
    assert!(names[0].is_string() && names[0] != names[1], "{names:?}");
}

#[test]
fn each_client_chooses_how_much_it_is_told() {
    let workspace = Workspace::new();
    let server = listening(&workspace);
    let (mut loud, mut quiet) = (server.session(Roots::None), server.session(Roots::None));
    loud.call("logging/setLevel", json!({"level": "info"}));
    quiet.call("logging/setLevel", json!({"level": "emergency"}));
    start(&mut loud, "echo for the loud one");
    let told = loud.notification("notifications/message");
    assert_eq!(told["params"]["data"]["output"], "for the loud one\n", "{told}");
    start(&mut quiet, "echo for the quiet one");
    let end = quiet.notification("notifications/progress");
    assert!(end.to_string().contains("for the quiet one"), "{end}");
    let told = quiet.others(std::time::Duration::ZERO);
    assert!(
        !json!(told).to_string().contains("notifications/message"),
        "{told:?}"
    );
}

#[test]
fn a_level_goes_for_what_runs_already() {
    let workspace = Workspace::new();
    let server = listening(&workspace);
    let mut client = server.session(Roots::None);
    let params = json!({
        "name": "sandboxed_shell",
        "arguments": {"command": "until test -e go; do sleep 0.02; done; echo late", "execution_mode": "asynchronous"},
        "_meta": {"progressToken": "mine"},
    });
    client.call("tools/call", params);
    let set = client.request("logging/setLevel", json!({"level": "info"}));
    client.answer(set);
    fs::write(workspace.scope().join("go"), "").unwrap();
    let told = client.notification("notifications/message");
    assert_eq!(told["params"]["data"]["output"], "late\n", "{told}");
    assert_eq!(told["params"]["_meta"]["ahma/relatedRequestId"], set, "{told}");
    let end = client.notification("notifications/progress");
    assert_eq!(end["params"]["progressToken"], "mine", "{end}");
    assert!(end["params"].get("_meta").is_none(), "{end}");
}

#[test]
fn a_client_cannot_take_anothers_name() {
    let workspace = Workspace::new();
    let server = listening(&workspace);
    let mut mine = server.session(Roots::None);
    let id = start(&mut mine, "until test -e go; do sleep 0.02; done");
    for mut thief in [
        server.session(Roots::None),
        server.sessionless(),
        server.sse(Roots::None),
    ] {
        for name in 0..20 {
            let gone = json!({"client": name.to_string()});
            thief.notify("notifications/ahma/client_gone", gone.clone());
            let answer = thief.call("notifications/ahma/client_gone", gone);
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
        }
    }
    let mut thief = server.session(Roots::None);
    for name in 0..20 {
        let params = json!({
            "name": "await",
            "arguments": {"timeout_seconds": 0},
            "_meta": {"ahma/client": name.to_string(), "ahma/principal": "root"},
        });
        let answer = thief.call("tools/call", params);
        assert!(answer.to_string().contains("nothing to wait for"), "{answer}");
    }
    fs::write(workspace.scope().join("go"), "").unwrap();
    let collected = mine.tool("await", json!({"operation_ids": [id]}));
    assert_eq!(
        collected["structuredContent"]["operations"][0]["status"], "completed",
        "{collected}"
    );
}
