//! A file that was found is not a file that was named.

use serde_json::{Value, json};
use test_support::{Era, Workspace};

use super::{ends::Bridge, wait_for_complaint, wait_for_tool};
use crate::session::options;

fn found(workspace: &Workspace, place: &str, servers: &Value) {
    let file = workspace.scope().join(place);
    std::fs::create_dir_all(file.parent().expect("below the scope")).expect("writable");
    std::fs::write(file, json!({ "servers": servers }).to_string()).expect("writable");
}

fn problems(status: &Value) -> Vec<&str> {
    let problems = status["structuredContent"]["remote_problems"].as_array();
    problems.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn a_found_file_gives_addresses_and_starts_nothing() {
    let bridge = Bridge::start();
    let workspace = Workspace::new();
    let witness = workspace.home().join("started");
    found(
        &workspace,
        "mcp.json",
        &json!({
            "Ahama": {"command": "ahma_mcp"},
            "far": {"url": bridge.url()},
            "tool": {"command": "touch", "args": [witness]},
            "leak": {"url": bridge.url(), "headers": {"X": "${env:HOME}"}},
        }),
    );
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for_tool(&mut server, "far_status");
    let status = server.tool("status", json!({}));
    let problems = problems(&status);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("servers.leak.headers.X"), "{problems:?}");
    assert!(problems[1].contains("servers.tool.command"), "{problems:?}");
    assert!(!witness.exists());
    assert_eq!(
        server.complaints(),
        "",
        "an editor's file is no reason to complain"
    );
}

#[test]
fn the_servers_of_a_clients_own_file_are_not_offered_a_second_time() {
    let bridge = Bridge::start();
    let workspace = Workspace::new();
    found(
        &workspace,
        ".vscode/mcp.json",
        &json!({"Ahama": {"command": "ahma_mcp"}, "far": {"url": bridge.url()}}),
    );
    let mut server = options(&workspace).open(Era::Legacy);
    let status = server.tool("status", json!({}));
    assert!(
        status["structuredContent"].get("remote_servers").is_none(),
        "{status}"
    );
    let mut server = options(&workspace)
        .args(["--mcp-config", ".vscode/mcp.json"])
        .open(Era::Legacy);
    wait_for_tool(&mut server, "far_status");
}

#[test]
fn a_found_file_is_not_used_where_commands_have_no_network() {
    let bridge = Bridge::start();
    let workspace = Workspace::new();
    found(&workspace, "mcp.json", &json!({"far": {"url": bridge.url()}}));
    let mut server = options(&workspace).args(["--network", "off"]).open(Era::Legacy);
    let status = server.tool("status", json!({}));
    assert!(
        status["structuredContent"].get("remote_servers").is_none(),
        "{status}"
    );
    assert!(
        problems(&status)[0].contains("name it with --mcp-config"),
        "{status}"
    );

    let mut server = options(&workspace)
        .args(["--network", "off", "--mcp-config", "mcp.json"])
        .open(Era::Legacy);
    wait_for_tool(&mut server, "far_status");
}

#[test]
fn a_command_cannot_change_the_file() {
    let workspace = Workspace::new();
    let before = json!({"servers": {}}).to_string();
    let named = workspace.scope().join("servers.json");
    std::fs::write(&named, &before).expect("writable");
    let mut server = options(&workspace)
        .args(["--mcp-config", "servers.json"])
        .open(Era::Legacy);
    let script = "echo evil > servers.json; rm -f servers.json; echo evil > mcp.json; true";
    server.tool(
        "sandboxed_shell",
        json!({"command": script, "execution_mode": "synchronous"}),
    );
    assert_eq!(std::fs::read_to_string(&named).expect("still there"), before);
    assert!(
        !workspace.scope().join("mcp.json").exists(),
        "the next start would find it"
    );
}

#[test]
fn logins_that_commands_can_read_are_not_used() {
    let bridge = Bridge::start();
    let workspace = Workspace::new();
    let mut server = super::mounting(&workspace, &json!({"far": {"url": bridge.url()}}))
        .args(["--token-file", "tokens.json"])
        .open(Era::Legacy);
    let status = server.tool("status", json!({}));
    assert!(
        status["structuredContent"].get("remote_servers").is_none(),
        "{status}"
    );
    assert!(
        problems(&status)[0].contains("commands can read the logins"),
        "{status}"
    );
    wait_for_complaint(&server, "--token-file");
}

#[test]
fn mistakes_of_a_named_file_are_told_and_the_rest_is_used() {
    let bridge = Bridge::start();
    let workspace = Workspace::new();
    let servers = json!({"far": {"url": bridge.url()}, "bad": {"url": "ftp://x"}, "gone": {"command": "no-such-program"}});
    let mut server = super::mounting(&workspace, &servers).open(Era::Legacy);
    wait_for_tool(&mut server, "far_status");
    for words in [
        "servers.bad.url: must be an http or https address",
        "`no-such-program` is not on PATH",
    ] {
        wait_for_complaint(&server, words);
    }
    let output = options(&workspace)
        .args(["--mcp-config", "missing.json"])
        .command()
        .output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("missing.json is not a file") && stderr.contains("hint:"),
        "{stderr}"
    );
}
