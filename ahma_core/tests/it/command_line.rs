//! The program as a command: modes that print and end, exit codes, the log.

use std::process::Output;

use serde_json::{Value, json};
use test_support::{Era, Workspace};

use crate::session::{echo, options};

fn run(workspace: &Workspace, arguments: &[&str]) -> Output {
    options(workspace)
        .args(arguments)
        .command()
        .output()
        .expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn list_tools_prints_what_clients_would_see_and_what_is_missing() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    let mut missing = echo("missing");
    missing["availability_check"] = json!({"command": "no-such-program-here"});
    missing["install_instructions"] = json!("apt install it");
    workspace.write_tool("missing.json", &missing);

    let output = run(&workspace, &["--mode", "list-tools"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let tool = |name: &str| {
        listed["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|tool| tool["name"] == name)
            .expect("listed")
            .clone()
    };
    assert_eq!(tool("say")["available"], true);
    assert_eq!(tool("say")["source"], json!(workspace.tools().join("say.json")));
    assert_eq!(tool("say")["parameters"]["required"], json!(["format"]));
    assert!(
        tool("say")["description"]
            .as_str()
            .expect("text")
            .contains("Prints")
    );
    assert_eq!(tool("missing")["available"], false);
    assert_eq!(tool("missing")["install_instructions"], "apt install it");

    let output = run(&workspace, &["--mode", "list-tools", "--format", "text"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("say (say.json)") && text.contains("- format (string, required)"),
        "{text}"
    );
    assert!(
        text.contains("not available: `no-such-program-here` was not found"),
        "{text}"
    );
}

#[test]
fn exit_codes_tell_whose_turn_it_is() {
    let workspace = Workspace::new();
    for (arguments, code, words) in [
        (&["--help"][..], 0, ""),
        (&["--version"], 0, ""),
        (&["--no-such-flag"], 2, "--no-such-flag"),
        (&["--network", "ports"], 2, "hint: add --allow-connect"),
        (
            &["--sandbox-scope", "missing"],
            1,
            "hint: give an existing directory",
        ),
        (&["--shell", "bash"], 1, "hint: write it as"),
        (&["--allow-read", "/no/such/path"], 1, "/no/such/path"),
        (&["--timeout", "soon"], 2, "expected a duration"),
    ] {
        let output = run(&workspace, arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(words),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let broken = options(&workspace)
        .env("AHMA_NO_SANDBOX", "maybe")
        .command()
        .output()
        .expect("it starts");
    assert_eq!(broken.status.code(), Some(2), "{}", stderr(&broken));
}

#[test]
fn a_flag_wins_over_its_variable() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.scope().join("by_flag")).expect("writable");
    std::fs::create_dir(workspace.scope().join("by_variable")).expect("writable");
    let options = options(&workspace).env("AHMA_SANDBOX_SCOPE", "by_variable");
    for (options, expected) in [
        (options.clone(), "by_variable"),
        (options.args(["--sandbox-scope", "by_flag"]), "by_flag"),
    ] {
        let mut server = options.open(Era::Legacy);
        let result = server.tool(
            "sandboxed_shell",
            json!({"command": "pwd", "execution_mode": "synchronous"}),
        );
        let pwd = result["structuredContent"]["output"]
            .as_str()
            .expect("text")
            .trim_end()
            .to_owned();
        assert_eq!(pwd, workspace.scope().join(expected).to_str().expect("plain"));
    }
}

#[test]
fn help_is_what_it_was() {
    let workspace = Workspace::new();
    let output = run(&workspace, &["--help"]);
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_log_goes_to_a_file_of_the_day_and_not_to_the_project() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    server.close_input();
    server.wait();
    assert_eq!(server.complaints(), "");
    let logs = workspace.home().join(".cache/ahma_mcp");
    let files: Vec<_> = std::fs::read_dir(&logs).expect("it was made").flatten().collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(files[0].path()).expect("readable");
    assert!(text.contains("started") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(std::fs::read_dir(workspace.scope()).expect("readable").count(), 0);
}

#[test]
fn the_log_on_stderr_has_colour_unless_it_is_unwanted() {
    let workspace = Workspace::new();
    for (no_color, coloured) in [("", true), ("1", false)] {
        let mut server = options(&workspace)
            .args(["--log-to-stderr"])
            .env("NO_COLOR", no_color)
            .open(Era::Legacy);
        server.close_input();
        server.wait();
        assert!(server.complaints().contains("started"));
        assert_eq!(
            server.complaints().contains('\u{1b}'),
            coloured,
            "{}",
            server.complaints()
        );
    }
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let workspace = Workspace::new();
    std::fs::write(workspace.home().join(".cache"), "in the way").expect("writable");
    let mut server = options(&workspace).open(Era::Legacy);
    assert!(!server.tool_names().is_empty());
    assert!(
        server.complaints().contains("no log can be written"),
        "{}",
        server.complaints()
    );
}
