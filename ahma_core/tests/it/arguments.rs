//! Arguments as agents write them: what can only mean one thing is taken, and a refusal says everything that a tool takes.

use std::ffi::OsStr;

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace};

use crate::{calls::text, session::options};

fn cargo_test() -> Value {
    json!({
        "name": "cargo_test", "description": "Tests.", "command": "printf '%s\\n'", "synchronous": true,
        "options": [
            { "name": "all-features", "type": "boolean" },
            { "name": "no-run", "type": "boolean" },
            { "name": "test", "type": "array" },
            { "name": "message", "type": "string", "aliases": ["msg"] },
            { "name": "filter", "type": "string" },
        ],
    })
}

fn server(workspace: &Workspace) -> Server {
    workspace.write_tool("cargo_test.json", &cargo_test());
    options(workspace).open(Era::Legacy)
}

fn refused(server: &mut Server, tool: &str, arguments: Value) -> String {
    let result = server.tool(tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    text(&result).to_owned()
}

#[test]
fn other_spellings_and_forms_are_taken() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    for (arguments, printed) in [
        (
            json!({ "all_features": true, "no_run": "true" }),
            "--all-features\n--no-run\n",
        ),
        (json!({ "test": "x" }), "--test\nx\n"),
        (json!({ "tests": ["x"] }), "--test\nx\n"),
        (json!({ "msg": 5, "timeoutSeconds": "60" }), "--message\n5\n"),
    ] {
        let result = server.tool("cargo_test", arguments);
        assert_eq!(result["isError"], false, "{result}");
        assert!(text(&result).contains(printed.trim_end()), "{result}");
    }
}

#[test]
fn an_operation_may_be_named_in_a_list_or_not() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let started = server.tool(
        "sandboxed_shell",
        json!({ "command": "echo printed; until [ -e gate ]; do sleep 0.02; done", "execution_mode": "asynchronous" }),
    );
    let words = text(&started).split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let id = words
        .into_iter()
        .find(|word| word.starts_with("op_"))
        .expect("an id")
        .to_owned();
    for (tool, arguments) in [
        ("status", json!({ "operation_id": id })),
        ("output", json!({ "operation_ids": [id] })),
        ("output", json!({ "operation_ids": id })),
        ("await", json!({ "operation_id": id, "timeout_seconds": "0" })),
        ("cancel", json!({ "operation_ids": [id] })),
    ] {
        let result = server.tool(tool, arguments.clone());
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
    }
}

#[test]
fn every_refusal_lists_what_the_tool_takes_in_one_style() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let answer = refused(&mut server, "cargo_test", json!({ "test_name": "x", "zzz": 1 }));
    for line in [
        "the arguments of `cargo_test` are not valid:",
        "- `test_name` is not an argument of this tool; did you mean `filter`?",
        "- `zzz` is not an argument of this tool",
    ] {
        assert!(answer.lines().any(|own| own == line), "{line}\n{answer}");
    }
    let usage = answer.lines().last().unwrap_or_default();
    assert!(
        usage.starts_with(
            "cargo_test takes {all-features?: boolean, filter?: string, message?: string, no-run?: boolean, test?: string[]} and "
        ),
        "{usage}"
    );
    for meta in ["execution_mode", "timeout_seconds", "working_directory"] {
        assert!(usage.contains(meta), "{usage}");
    }
    for (tool, argument) in [
        ("await", "operation_ids"),
        ("status", "operation_ids"),
        ("cancel", "operation_id"),
        ("output", "operation_id"),
        ("sandboxed_shell", "command"),
        ("file_read", "path"),
    ] {
        let answer = refused(&mut server, tool, json!({ "zzz": 1 }));
        let first = format!("the arguments of `{tool}` are not valid:");
        assert_eq!(answer.lines().next(), Some(first.as_str()), "{answer}");
        assert!(
            answer.contains("\n- `zzz` is not an argument of this tool\n"),
            "{answer}"
        );
        let usage = answer.lines().last().unwrap_or_default();
        assert!(
            usage.starts_with(&format!("{tool} takes {{")) && usage.contains(argument),
            "{answer}"
        );
    }
}

#[test]
fn an_unknown_shell_is_answered_with_the_one_there_is() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    for name in ["bash", "shell", "run", "exec"] {
        let answer = server.call(
            "tools/call",
            json!({ "name": name, "arguments": { "command": "ls" } }),
        );
        assert!(answer.to_string().contains("`sandboxed_shell`"), "{answer}");
    }
}

#[test]
fn an_argument_too_long_for_a_command_line_is_told_of_files() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let answer = refused(
        &mut server,
        "cargo_test",
        json!({ "message": "x".repeat(200_000) }),
    );
    assert!(
        answer.contains("200000 bytes") && answer.contains("`file_write`"),
        "{answer}"
    );
}

#[test]
fn a_path_may_be_any_that_commands_may_read() {
    let workspace = Workspace::new();
    let opened = tempfile::tempdir().unwrap();
    std::fs::write(opened.path().join("file"), "1\n2\n").unwrap();
    workspace.write_tool(
        "count.json",
        &json!({ "name": "count", "description": "Counts.", "command": "wc -l", "synchronous": true,
                 "positional_args": [{ "name": "file", "type": "string", "format": "path", "required": true }] }),
    );
    let mut server = options(&workspace)
        .args([OsStr::new("--allow-read"), opened.path().as_os_str()])
        .open(Era::Modern);
    for (path, expected) in [
        (opened.path().join("file"), Some("2 ")),
        ("/usr/bin/env".into(), Some("/usr/bin/env")),
        ("/root/.ssh/id_rsa".into(), None),
    ] {
        let result = server.tool("count", json!({"file": path}));
        let text = result["content"][0]["text"].as_str().unwrap();
        match expected {
            Some(expected) => assert!(text.contains(expected), "{text}"),
            None => assert!(
                text.contains("is outside the sandbox scope") && text.contains("`--allow-read`"),
                "{text}"
            ),
        }
    }
}
