//! Remote servers mounted in ours: what passes through, what goes wrong, and who may not be mounted.
//!
//! The remote ends are real: our own program over HTTP, programs of others, an authorization server.

mod ends;
mod everyone_elses;
mod front;
mod login;
mod mounting;
mod trouble;
mod trust;

use serde_json::{Value, json};
use test_support::{Client, ServerOptions, Workspace, wait_for};

use crate::session::options;

/// A server that mounts `servers`, by a file that is named.
fn mounting(workspace: &Workspace, servers: &Value) -> ServerOptions {
    let file = workspace.home().join("mcp.json");
    std::fs::write(&file, json!({ "servers": servers }).to_string()).expect("writable");
    options(workspace)
        .args(["--no-browser", "--mcp-config"])
        .args([file])
}

/// Waits until the server offers a tool.
#[track_caller]
fn wait_for_tool(server: &mut Client, name: &str) {
    wait_for(name, || {
        server.tool_names().iter().any(|tool| tool == name).then_some(())
    });
}

/// The text of `status` about a remote server.
#[track_caller]
fn status_of(server: &mut Client, name: &str) -> Value {
    let status = server.tool("status", json!({}));
    let servers = status["structuredContent"]["remote_servers"].as_array().cloned();
    let servers = servers.unwrap_or_default();
    let found = servers.into_iter().find(|server| server["name"] == name);
    found.unwrap_or_else(|| panic!("no remote server {name}: {status}"))
}

/// Waits until `status` says that a remote server is in that state, and gives all it says.
#[track_caller]
fn wait_for_state(server: &mut Client, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} to be {state}"), || {
        let status = status_of(server, name);
        (status["state"] == state).then_some(status)
    })
}

/// Waits until the server has said something on stderr.
#[track_caller]
fn wait_for_complaint(server: &Client, words: &str) {
    wait_for(&format!("`{words}` on stderr"), || {
        server.complaints().contains(words).then_some(())
    });
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}
