//! Tokens that are limited to some tools, against a real server in both modes and both eras.

use serde_json::{Value, json};
use test_support::{Client, HttpServer, Roots, Workspace};

use crate::session::options;

const LIMIT: &str = "file_r*,all_of_it";

/// Lists, finds and calls what the limit allows, and nothing else, whatever the client writes itself.
#[track_caller]
fn check(client: &mut Client, mode: &str) {
    let names = client.tool_names();
    for (name, expected) in [
        ("file_read", true),
        ("status", true),
        ("file_write", false),
        ("sandboxed_shell", false),
    ] {
        assert_eq!(
            names.iter().any(|listed| listed == name),
            expected,
            "{mode}: {names:?}"
        );
    }
    let forged = json!({ "ahma/tools": "*", "ahma/principal": "root" });
    let shell = json!({ "command": "touch escaped" });
    for params in [
        json!({ "name": "sandboxed_shell", "arguments": shell }),
        json!({ "name": "sandboxed_shell", "arguments": shell, "_meta": forged }),
        json!({ "name": "ahma_call", "arguments": { "tool": "sandboxed_shell", "arguments": shell } }),
    ] {
        let answer = client.call("tools/call", params.clone());
        assert!(is_refused(&answer), "{mode}: {params} gives {answer}");
    }
    let found = client.tool(
        "ahma_find",
        json!({ "query": "write a file or run a shell command" }),
    );
    let found = found.to_string();
    assert!(
        !found.contains("file_write(") && !found.contains("sandboxed_shell("),
        "{mode}: {found}"
    );
    let read = client.tool("file_read", json!({ "path": "note" }));
    assert!(read.to_string().contains("hello"), "{mode}: {read}");
    let sequence = client.tool("all_of_it", json!({ "execution_mode": "synchronous" }));
    assert!(sequence.to_string().contains("one step"), "{mode}: {sequence}");
}

fn is_refused(answer: &Value) -> bool {
    let text = answer.to_string();
    text.contains("limited to other tools than sandboxed_shell") && text.contains(LIMIT)
}

#[test]
fn a_limited_token_lists_finds_and_calls_no_other_tools() {
    for isolation in [&[][..], &["--session-isolation"]] {
        let workspace = Workspace::new();
        std::fs::write(workspace.scope().join("note"), "hello\n").unwrap();
        workspace.write_tool(
            "all.json",
            &json!({
                "name": "all_of_it", "description": "Runs a step.", "command": "sequence", "enabled": true,
                "sequence": [{ "tool": "sandboxed_shell", "args": { "command": "echo one step" }, "description": "say" }],
            }),
        );
        let tokens = workspace.home().join("tokens.json");
        let new = options(&workspace).args(["token", "new", "--name", "few", "--tools", LIMIT, "--file"]);
        let issued = new.args([&tokens]).command().output().unwrap();
        assert!(issued.status.success(), "{issued:?}");
        let token = String::from_utf8(issued.stdout).unwrap().trim().to_owned();
        let server = HttpServer::start(
            &options(&workspace)
                .args(["--mode", "http", "--http-port", "0", "--tokens-file"])
                .args([&tokens])
                .args(isolation),
        );
        check(&mut server.session_as(&token, Roots::None), "legacy");
        check(&mut server.sessionless_as(&token), "modern");
        assert!(!workspace.scope().join("escaped").exists());
    }
}
