//! Calls of tools, over raw lines in both eras.

use serde_json::{Value, json};
use test_support::{Client, Era, Server, Workspace, wait_for};

use crate::session::{echo, options};

pub(crate) fn shell(client: &mut Client, command: &str, mode: &str) -> Value {
    client.tool(
        "sandboxed_shell",
        json!({"command": command, "execution_mode": mode}),
    )
}

/// Starts a command in the background; gives its id.
pub(crate) fn start(client: &mut Client, command: &str) -> String {
    let started = shell(client, command, "asynchronous");
    // Where there are few cores, many at once wait for their turn.
    let status = &started["structuredContent"]["status"];
    assert!(status == "started" || status == "queued", "{started}");
    started["structuredContent"]["operation_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("results carry text")
}

#[test]
fn a_synchronous_call_answers_with_its_outcome() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let result = server.tool("say", json!({"format": "%s|", "words": ["it's", "a b", "$HOME"]}));
        assert_eq!(result["structuredContent"]["output"], "it's|a b|$HOME|");
        assert_eq!(result["structuredContent"]["status"], "completed");
        assert_eq!(result["structuredContent"]["exit_code"], 0);
        assert_eq!(
            result["structuredContent"]["working_directory"],
            json!(workspace.scope())
        );
        assert_eq!(text(&result), "it's|a b|$HOME|");
        assert_ne!(result["isError"], true);
        assert!(
            ["full", "core"].contains(&result["_meta"]["ahma/sandbox"]["tier"].as_str().expect("a tier"))
        );
    }
}

#[test]
fn a_failed_command_is_a_result_and_not_a_protocol_error() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let result = shell(&mut server, "echo before; echo wrong >&2; exit 7", "synchronous");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["status"], "failed");
    assert_eq!(result["structuredContent"]["exit_code"], 7);
    assert_eq!(result["structuredContent"]["output"], "before\nwrong\n");
    assert!(text(&result).starts_with("exit 7 after "), "{}", text(&result));
    assert!(result["structuredContent"]["duration_seconds"].is_number());
}

#[test]
fn an_unknown_tool_is_a_protocol_error_with_near_names() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say_loudly"));
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        for (wrong, right) in [
            ("say_loudy", "say_loudly"),
            ("awiat", "await"),
            ("sandbox_shell", "sandboxed_shell"),
        ] {
            let error = server.call("tools/call", json!({"name": wrong}))["error"].clone();
            assert_eq!(error["code"], -32602);
            assert!(
                error["message"].as_str().expect("text").contains(right),
                "{error}"
            );
        }
    }
}

#[test]
fn every_mistake_in_the_arguments_is_listed() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    let mut server = options(&workspace).open(Era::Legacy);
    let result = server.tool(
        "say",
        json!({"words": "x", "colour": 1, "timeout_seconds": "long"}),
    );
    assert_eq!(result["isError"], true);
    for name in ["format", "words", "colour", "timeout_seconds"] {
        assert!(text(&result).contains(name), "{}", text(&result));
    }
    let result = server.tool(
        "await",
        json!({"until": "some", "timeout_seconds": 500, "operation_ids": ["op_x"], "y": 1}),
    );
    assert_eq!(result["isError"], true);
    for name in ["until", "timeout_seconds", "op_x", "y"] {
        assert!(text(&result).contains(name), "{}", text(&result));
    }
}

#[test]
fn a_refused_connection_is_explained_and_no_device_is_opened_for_it() {
    let workspace = Workspace::new();
    for (tier, network, flag) in [
        ("full", &["--network", "off"][..], "--network open"),
        ("full", &["--network", "loopback"], "--network open"),
        ("full", &["--allow-connect", "443"], "--allow-connect 9 as well"),
        ("core", &["--network", "off"], "--network open"),
        ("core", &["--allow-connect", "443"], "--allow-connect 9 as well"),
    ] {
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .args(network)
            .open(Era::Modern);
        // An address for documentation: no host has it, whatever the network.
        let result = shell(&mut server, "exec 3<>/dev/tcp/192.0.2.1/9", "synchronous");
        let hint = result["structuredContent"]["sandbox_hint"]
            .as_str()
            .unwrap_or_else(|| panic!("{tier} {network:?}: {result}"));
        assert!(
            hint.contains(flag) && hint.contains("192.0.2.1 port 9") && !hint.contains("/dev"),
            "{tier} {network:?}: {hint}"
        );
        let result = shell(&mut server, "exec 3<>/dev/tcp/192.0.2.1/9; true", "synchronous");
        assert!(
            result["structuredContent"].get("sandbox_hint").is_none(),
            "{result}"
        );
    }
}

#[test]
fn steps_are_shown_with_what_they_are_for() {
    let workspace = Workspace::new();
    workspace.write_tool(
        "both.json",
        &json!({
            "name": "both", "description": "Both.", "command": "sequence", "synchronous": true,
            "sequence": [{"tool": "sandboxed_shell", "args": {"command": "true"}, "description": "look first"}],
        }),
    );
    let mut server = options(&workspace).open(Era::Modern);
    let result = server.tool("both", json!({}));
    assert_eq!(
        result["structuredContent"]["steps"][0]["description"], "look first",
        "{result}"
    );
    assert!(
        text(&result).contains("step sandboxed_shell (look first): completed"),
        "{}",
        text(&result)
    );
}

#[test]
fn a_synchronous_call_that_takes_too_long_goes_on_in_the_background() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).args(["--sync-wait", "5s"]).open(Era::Legacy);
    let result = shell(
        &mut server,
        "echo early; until [ -e gate ]; do sleep 0.02; done; echo late",
        "synchronous",
    );
    assert_eq!(result["structuredContent"]["status"], "running");
    assert_eq!(result["structuredContent"]["output"], "early\n");
    assert_ne!(result["isError"], true);
    let id = result["structuredContent"]["operation_id"].clone();
    assert!(text(&result).contains(id.as_str().expect("an id")));
    std::fs::write(workspace.scope().join("gate"), "").expect("writable");
    let waited = server.tool("await", json!({"operation_ids": [id]}));
    assert_eq!(
        waited["structuredContent"]["operations"][0]["output"], "late\n",
        "what was shown is not shown again"
    );
}

#[test]
fn the_mode_is_chosen_by_flag_then_call_then_tool() {
    let workspace = Workspace::new();
    let mut tool = echo("say");
    tool["synchronous"] = json!(false);
    workspace.write_tool("say.json", &tool);
    let status = |server: &mut Server, mode: Option<&str>| {
        let mut arguments = json!({"format": "x"});
        if let Some(mode) = mode {
            arguments["execution_mode"] = json!(mode);
        }
        server.tool("say", arguments)["structuredContent"]["status"]
            .as_str()
            .expect("a status")
            .to_owned()
    };
    let mut server = options(&workspace).open(Era::Legacy);
    assert_eq!(status(&mut server, None), "started");
    assert_eq!(status(&mut server, Some("synchronous")), "completed");
    assert_eq!(status(&mut server, Some("AsyncResultPush")), "started");
    let mut server = options(&workspace).args(["--sync"]).open(Era::Legacy);
    assert_eq!(status(&mut server, Some("asynchronous")), "completed");
}

#[test]
fn running_without_a_sandbox_is_loud() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).env("AHMA_NO_SANDBOX", "1").open(Era::Modern);
    let result = shell(&mut server, "true", "synchronous");
    let note = &result["_meta"]["ahma/sandbox"];
    assert_eq!(note["tier"], "off");
    assert!(
        note["warning"]
            .as_str()
            .expect("a warning")
            .contains("NO SANDBOX"),
        "{note}"
    );
    wait_for("the warning on stderr", || {
        server.complaints().contains("NO SANDBOX").then_some(())
    });
    assert!(text(&server.tool("status", json!({}))).contains("NO SANDBOX"));
}

#[test]
fn a_server_without_a_scope_runs_nothing() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).args(["--defer-sandbox"]).open(Era::Legacy);
    assert!(server.tool_names().contains(&"sandboxed_shell".to_owned()));
    let refused = shell(&mut server, "touch ran", "synchronous");
    assert_eq!(refused["isError"], true);
    assert!(!workspace.scope().join("ran").exists());
}
