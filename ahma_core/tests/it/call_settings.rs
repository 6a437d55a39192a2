//! Variables, standard input, lifetime and stop signal of a call, and the environment of commands, through a real server.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace, needs};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ahma_mcp");

fn open(workspace: &Workspace, tier: &str) -> Server {
    ServerOptions::new(PROGRAM, workspace)
        .with_defaults()
        .args(["--sandbox-tier", tier])
        .open(Era::Legacy)
}

fn answer(server: &mut Server, tool: &str, arguments: Value) -> String {
    let result = server.tool(tool, arguments);
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn variables_and_input_reach_the_shell_and_tools() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        workspace.write_tool(
            "reader.json",
            &json!({ "name": "reader", "description": "Reads.", "command": "cat", "synchronous": true }),
        );
        let server = &mut open(&workspace, tier);
        let shell = json!({
            "command": "echo \"$GREETING\"; cat; ls -A $TMPDIR | grep -c argument",
            "env": { "GREETING": "hello" }, "stdin": "from 'input'\n",
        });
        for tool in ["sandboxed_shell", "readonly_shell"] {
            let text = answer(server, tool, shell.clone());
            assert!(text.contains("hello\nfrom 'input'\n1"), "{tier} {tool}: {text}");
        }
        let text = answer(server, "reader", json!({ "stdin": "to a tool" }));
        assert!(text.contains("to a tool"), "{tier}: {text}");
        let text = answer(
            server,
            "sandboxed_shell",
            json!({ "command": "ls -A $TMPDIR; echo \"[$CI]\"" }),
        );
        assert!(
            !text.contains("argument") && text.contains("[]"),
            "{tier}: {text}"
        );
    }
}

#[test]
fn programs_of_the_project_come_first() {
    let workspace = Workspace::new();
    for directory in [".venv/bin", "node_modules/.bin"] {
        fs::create_dir_all(workspace.scope().join(directory)).unwrap();
    }
    let write = |path: &str, text: &str| {
        let file = workspace.scope().join(path);
        fs::write(&file, format!("#!/bin/sh\necho {text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(".venv/bin/date", "of the venv");
    write("node_modules/.bin/own", "of node");
    workspace.write_tool(
        "date.json",
        &json!({ "name": "date", "description": "Date.", "command": "date", "synchronous": true }),
    );
    let server = &mut open(&workspace, "core");
    for (tool, arguments, expected) in [
        (
            "sandboxed_shell",
            json!({ "command": "date; own" }),
            "of the venv\nof node",
        ),
        (
            "readonly_shell",
            json!({ "command": "date; own" }),
            "of the venv\nof node",
        ),
        ("date", json!({}), "of the venv"),
    ] {
        let text = answer(server, tool, arguments);
        assert!(text.contains(expected), "{tool}: {text}");
    }
}

/// TERM follows if INT is not enough, and KILL if TERM is not.
#[test]
fn a_stopped_command_can_say_where_it_was() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let server = &mut open(&workspace, tier);
        for (script, expected) in [
            (
                "trap 'echo was here; exit 1' INT; echo up; while :; do sleep 0.05; done",
                "was here",
            ),
            (
                "trap '' INT; trap 'echo was asked; exit 1' TERM; echo up; while :; do sleep 0.05; done",
                "was asked",
            ),
            ("trap '' INT TERM; echo up; while :; do sleep 0.05; done", ""),
        ] {
            let started = server.tool(
                "sandboxed_shell",
                json!({ "command": script, "execution_mode": "asynchronous" }),
            );
            let id = &started["_meta"]["ahma/operation"]["operation_id"];
            let up = answer(
                server,
                "await",
                json!({ "operation_ids": [id], "until_line": "^up$" }),
            );
            assert!(up.ends_with("\nup\n"), "{tier} {script}: {up}");
            answer(server, "cancel", json!({ "operation_id": id }));
            let printed = answer(server, "output", json!({ "operation_id": id }));
            assert!(
                printed.contains("up\n") && printed.contains(expected),
                "{tier} {script}: {printed}"
            );
        }
    }
}

/// It would keep its first lines back: a pipe is not a terminal.
#[test]
fn lines_of_a_python_program_are_seen_when_they_are_printed() {
    let python = "/usr/bin/python3";
    if !needs(python, &["--version"], "install Python 3") {
        return;
    }
    let workspace = Workspace::new();
    let server = &mut open(&workspace, "full");
    let script = format!("{python} -c 'import time; print(\"listening\"); time.sleep(3600)'");
    let text = answer(
        server,
        "sandboxed_shell",
        json!({ "command": script, "ready": "^listening$" }),
    );
    assert!(text.contains("listening"), "{text}");
}

#[test]
fn a_server_answers_when_it_is_ready_and_is_not_waited_for() {
    let workspace = Workspace::new();
    let server = &mut open(&workspace, "full");
    // Without `ready` the call would be answered after the inline wait only.
    let script = "echo starting; until [ -e go ]; do sleep 0.05; done; echo listening on 80; sleep 3600";
    let request = server.request(
        "tools/call",
        json!({ "name": "sandboxed_shell", "arguments": { "command": script, "ready": "listening on \\d+" } }),
    );
    fs::write(workspace.scope().join("go"), "").unwrap();
    let result = server.answer(request)["result"].take();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("listening on 80") && text.contains("ready; keeps running until it is cancelled"),
        "{text}"
    );
    let id = result["_meta"]["ahma/operation"]["operation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned();
    let text = answer(server, "await", json!({ "timeout_seconds": 40 }));
    assert!(!text.contains("still running"), "{text}");
    let text = answer(server, "status", json!({}));
    assert!(text.contains("keeps running"), "{text}");
    let text = answer(server, "cancel", json!({ "operation_id": id }));
    assert!(text.contains("cancelled"), "{text}");
}
