//! Servers that are dead, silent, killed or cut off: an honest answer, and no other server is disturbed.

use std::{net::TcpListener, time::Duration};

use serde_json::json;
use test_support::{Era, Server, Workspace, wait_for};

use super::{
    ends::{Bridge, Wire, dead_address},
    mounting, status_of, text_of, wait_for_state, wait_for_tool,
};

#[test]
fn dead_and_silent_servers_delay_nobody() {
    let bridge = Bridge::start();
    // Accepts connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent_url = format!("http://{}/mcp", silent.local_addr().expect("bound"));
    let servers = json!({
        "dead": {"url": format!("http://{}/mcp", dead_address())},
        "good": {"url": bridge.url()},
        "silent": {"url": silent_url},
    });
    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &servers)
        .args(["--max-retries", "0"])
        .open(Era::Legacy);
    // Were it to wait for them, it would do so for half a minute.
    let listing = server.request("tools/list", json!({}));
    assert!(
        server.answer_within(listing, Duration::from_secs(10)).is_some(),
        "the list waits"
    );
    wait_for_tool(&mut server, "good_status");
    let dead = wait_for_state(&mut server, "dead", "failed");
    assert!(
        dead["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("Connection refused")),
        "{dead}"
    );
    assert_eq!(status_of(&mut server, "silent")["state"], "connecting");
    let refused = server.tool("dead_anything", json!({}));
    assert_eq!(refused["isError"], true);
    assert!(
        text_of(&refused).contains("remote server `dead` is not available"),
        "{refused}"
    );
    let text = server.tool("status", json!({}));
    assert!(text_of(&text).contains("remote server dead"), "{text}");
    server.close_input();
    server.wait();
}

/// Starts a remote command that leaves a line in `runs`, then goes on for long.
#[track_caller]
fn start_long(server: &mut Server, bridge: &Bridge, rest: &str) -> i64 {
    let arguments = json!({"command": format!("echo run >> runs; {rest}"), "execution_mode": "synchronous"});
    let id = server.request(
        "tools/call",
        json!({"name": "far_sandboxed_shell", "arguments": arguments}),
    );
    let runs = bridge.workspace.scope().join("runs");
    wait_for("the command to start", || runs.exists().then_some(()));
    id
}

#[track_caller]
fn assert_run_once(bridge: &Bridge) {
    let runs = std::fs::read_to_string(bridge.workspace.scope().join("runs")).expect("written");
    assert_eq!(runs, "run\n", "a call must never be sent twice");
}

#[test]
fn a_server_killed_during_a_call_is_reported_and_comes_back() {
    let mut bridge = Bridge::start();
    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &json!({"far": {"url": bridge.url()}})).open(Era::Legacy);
    wait_for_tool(&mut server, "far_sandboxed_shell");
    let id = start_long(&mut server, &bridge, "sleep 1000");
    bridge.kill();
    let answer = server.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = text_of(&answer["result"]);
    assert!(text.contains("may or may not have run"), "{text}");

    bridge.restart();
    // The tools stay listed meanwhile, and the call waits for the server.
    let again = server.tool(
        "far_sandboxed_shell",
        json!({"command": "echo back", "execution_mode": "synchronous"}),
    );
    assert_eq!(again["structuredContent"]["output"], "back\n", "{again}");
    assert_run_once(&bridge);
}

#[test]
fn a_server_that_stays_away_loses_its_tools_and_brings_them_back() {
    let mut bridge = Bridge::start();
    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &json!({"far": {"url": bridge.url()}}))
        .args(["--max-retries", "0"])
        .open(Era::Legacy);
    wait_for_tool(&mut server, "far_status");
    bridge.kill();
    // Only who asks learns that it is gone.
    let refused = server.tool("far_status", json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    wait_for_state(&mut server, "far", "failed");
    assert!(!server.tool_names().iter().any(|name| name.starts_with("far_")));
    bridge.restart();
    // A call is a reason to try again; no client has to wait for the next minute.
    let status = server.tool("far_status", json!({}));
    assert!(status["structuredContent"]["sandbox"].is_object(), "{status}");
    wait_for_tool(&mut server, "far_status");
}

/// The modern era cannot resume: the call is lost for certain, since its command ends only after the answer.
#[test]
fn a_call_whose_connection_is_cut_is_reported_as_lost() {
    let bridge = Bridge::start();
    let wire = Wire::to(bridge.address());
    let workspace = Workspace::new();
    let servers = json!({"far": {"url": format!("http://{}/mcp", wire.address)}});
    let mut server = mounting(&workspace, &servers).open(Era::Legacy);
    wait_for_tool(&mut server, "far_sandboxed_shell");
    let id = start_long(
        &mut server,
        &bridge,
        "until [ -e go ]; do sleep 0.05; done; echo end",
    );
    wire.cut();
    wait_for("a retry on the cut wire", || (wire.refused() > 0).then_some(()));
    wire.mend();
    let answer = server.answer(id);
    assert!(
        text_of(&answer["result"]).contains("may or may not have run"),
        "{answer}"
    );
    std::fs::write(bridge.workspace.scope().join("go"), "").expect("writable");
    let again = server.tool(
        "far_sandboxed_shell",
        json!({"command": "echo back", "execution_mode": "synchronous"}),
    );
    assert_eq!(again["structuredContent"]["output"], "back\n", "{again}");
    assert_run_once(&bridge);
}
