//! The list of tools: what it shows and costs, and the way to the tools that it does not show.

use std::fs;

use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace, pack_files, wait_for};

use crate::calls::text;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ahma_mcp");

fn open(workspace: &Workspace, era: Era, expose: &str) -> Server {
    ServerOptions::new(PROGRAM, workspace)
        .args(["--expose", expose])
        .open(era)
}

/// Two tools, of which only one is in the list by default.
fn with_tools() -> Workspace {
    let workspace = Workspace::new();
    let file = json!({
        "name": "say", "description": "Say something. In one line.", "command": "printf", "synchronous": true,
        "subcommand": [
            { "name": "default", "description": "Say a word.", "positional_args": [{ "name": "word", "type": "string" }] },
            {
                "name": "whisper", "description": "Whisper a secret to a friend. Nobody else hears it.", "level": "extended",
                "positional_args": [{ "name": "secret", "type": "string", "required": true }],
            },
        ],
    });
    workspace.write_tool("say.json", &file);
    workspace
}

fn names_from_files(server: &mut Server) -> Vec<String> {
    let mut names = server.tool_names();
    names.retain(|name| name.starts_with("say") || name.starts_with("ahma_"));
    names
}

#[test]
fn the_list_shows_what_is_asked_for() {
    let workspace = with_tools();
    for era in Era::BOTH {
        for (expose, expected) in [
            ("core", vec!["ahma_call", "ahma_find", "say"]),
            ("all", vec!["say", "say_whisper"]),
            ("search", vec!["ahma_call", "ahma_find"]),
        ] {
            let mut server = open(&workspace, era, expose);
            assert_eq!(names_from_files(&mut server), expected, "{era:?} {expose}");
        }
    }
}

#[test]
fn a_hidden_tool_is_found_and_called() {
    let workspace = with_tools();
    for era in Era::BOTH {
        let mut server = open(&workspace, era, "core");
        let found = server.tool("ahma_find", json!({ "query": "whispering secrets" }));
        assert!(
            text(&found).starts_with(
                "say_whisper {secret: string} - Whisper a secret to a friend.\nCall one with ahma_call"
            ),
            "{found}"
        );
        let arguments = json!({ "secret": "%s" });
        for (tool, arguments) in [
            ("say_whisper", arguments.clone()),
            (
                "ahma_call",
                json!({ "tool": "say_whisper", "arguments": arguments }),
            ),
            (
                "ahma_call",
                json!({ "tool": "say_whisper", "arguments": arguments.to_string() }),
            ),
        ] {
            let said = server.tool(tool, arguments);
            assert!(
                said["isError"] != json!(true) && text(&said).contains("whisper"),
                "{said}"
            );
        }
    }
}

#[test]
fn a_call_that_cannot_be_made_says_how() {
    let workspace = with_tools();
    let mut server = open(&workspace, Era::Legacy, "core");
    for (arguments, expected) in [
        (
            json!({ "tool": "say_whisper", "arguments": {} }),
            "say_whisper takes {secret: string}",
        ),
        (json!({ "tool": "say_wisper" }), "`say_whisper`"),
        (json!({}), "`tool` is required"),
        (json!({ "tool": "ahma_call" }), "must be another tool"),
        (
            json!({ "tool": "say", "arguments": [] }),
            "`arguments` must be an object",
        ),
    ] {
        let refused = server.tool("ahma_call", arguments);
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(text(&refused).contains(expected), "{expected}: {refused}");
    }
    let nothing = server.tool("ahma_find", json!({ "query": "xylophone" }));
    assert!(text(&nothing).starts_with("no tool matches"), "{nothing}");
}

/// Built-in tools through `ahma_call` too: a model that has learnt it uses it for all.
#[test]
fn any_tool_can_be_called() {
    let workspace = with_tools();
    let mut server = open(&workspace, Era::Modern, "search");
    for call in [
        json!({ "tool": "sandboxed_shell", "arguments": { "command": "echo heard" } }),
        json!({ "tool": "say", "arguments": { "word": "heard" } }),
        json!({ "tool": "ahma_find", "arguments": { "query": "heard the secret" } }),
    ] {
        let result = server.tool("ahma_call", call);
        assert_ne!(result["isError"], true, "{result}");
    }
    let failed = json!({ "tool": "sandboxed_shell", "arguments": { "command": "exit 3", "execution_mode": "synchronous" } });
    assert_eq!(server.tool("ahma_call", failed)["isError"], true);
}

/// The shipped tools with programs that are all there.
fn with_shipped_tools(files: &[&str]) -> Workspace {
    let workspace = Workspace::new();
    for path in pack_files() {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        if !files.is_empty() && !files.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let mut tool: Value = serde_json::from_str(&text).expect("JSON");
        drop_checks(&mut tool);
        workspace.write_tool(&name, &tool);
    }
    workspace
}

/// The list must not depend on the programs installed here.
fn drop_checks(tool: &mut Value) {
    if let Value::Object(fields) = tool {
        fields.remove("$schema");
        if fields.contains_key("command") && fields["command"] != "sequence" {
            fields.insert("availability_check".into(), json!("true"));
        } else {
            fields.remove("availability_check");
        }
        for subcommand in fields
            .get_mut("subcommand")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            drop_checks(subcommand);
        }
    }
}

fn listed(workspace: &Workspace, era: Era, expose: &str) -> Value {
    let mut server = open(workspace, era, expose);
    server.call("tools/list", json!({}))["result"]["tools"].clone()
}

#[test]
fn the_list_keeps_its_budget() {
    let rust = [
        "cargo.json",
        "rust_quality.json",
        "git.json",
        "rg.json",
        "rg_files.json",
    ];
    let python = [
        "python.json",
        "python_code.json",
        "python_module.json",
        "pip.json",
        "pytest.json",
        "git.json",
        "rg.json",
        "rg_files.json",
    ];
    for (files, expose, max_tools, max_bytes) in [
        (rust.as_slice(), "core", 28, 20_000),
        (python.as_slice(), "core", 28, 20_000),
        (&[], "core", 100, 40_000),
        (&[], "search", 12, MAX_SEARCH_BYTES),
    ] {
        let workspace = with_shipped_tools(files);
        let tools = listed(&workspace, Era::Legacy, expose);
        let (count, bytes) = (tools.as_array().expect("a list").len(), tools.to_string().len());
        assert!(
            count <= max_tools && bytes <= max_bytes,
            "{expose} {files:?}: {count} tools, {bytes} bytes"
        );
    }
}

#[test]
fn the_search_list_stays_small_however_many_tools_there_are() {
    let workspace = Workspace::new();
    for number in 0..300 {
        let name = format!("family{number}_does_something");
        let file = json!({ "name": name, "description": "Does something.", "command": "true" });
        workspace.write_tool(&format!("{number}.json"), &file);
    }
    let bytes = listed(&workspace, Era::Legacy, "search").to_string().len();
    assert!(bytes <= MAX_SEARCH_BYTES, "{bytes} bytes");
}

/// No tool spends more on what all tools take.
#[test]
fn the_common_parameters_cost_little() {
    let workspace = Workspace::new();
    workspace.write_tool(
        "plain.json",
        &json!({ "name": "plain", "description": "Plain.", "command": "true" }),
    );
    let tools = listed(&workspace, Era::Legacy, "all");
    let plain = tools
        .as_array()
        .expect("a list")
        .iter()
        .find(|tool| tool["name"] == "plain");
    let properties = plain.expect("listed")["inputSchema"]["properties"].to_string();
    // Without the braces around them.
    assert!(properties.len() - 2 <= 110, "{properties}");
}

/// Bytes of the built-in tools, however many tool files there are.
const MAX_SEARCH_BYTES: usize = 5_000;

#[test]
fn the_list_is_the_same_after_a_restart() {
    let workspace = with_shipped_tools(&[]);
    for era in Era::BOTH {
        let first = listed(&workspace, era, "core");
        assert_eq!(first.to_string(), listed(&workspace, era, "core").to_string());
    }
}

/// Checks that end before the list is asked for, at about that time, and never.
#[test]
fn the_list_does_not_depend_on_how_long_checks_take() {
    let workspace = with_tools();
    for (name, check) in [
        ("quick", "false"),
        ("short", "sh -c 'sleep 0.01; exit 1'"),
        ("slow", "sh -c 'sleep 0.2; exit 1'"),
        ("endless", "sleep 86415"),
        ("gone", "no-such-program-here"),
    ] {
        let tool =
            json!({ "name": name, "description": "A.", "command": "printf", "availability_check": check });
        workspace.write_tool(&format!("{name}.json"), &tool);
    }
    let names = |server: &mut Server| {
        let mut names = server.tool_names();
        names.retain(|name| ["quick", "short", "slow", "endless", "gone"].contains(&name.as_str()));
        names
    };
    for start in 0..6 {
        let mut server = open(&workspace, Era::BOTH[start % 2], "core");
        let first = names(&mut server);
        assert_eq!(first, ["endless", "quick", "short", "slow"], "start {start}");
        wait_for("the slow check to fail", || {
            let refused = server.tool("slow", json!({}));
            text(&refused).contains("`slow` is not available").then_some(())
        });
        assert_eq!(names(&mut server), first, "start {start}");
        let mut told = server.others_by_now();
        told.retain(|message| message["method"] == "notifications/tools/list_changed");
        assert!(told.is_empty(), "start {start}: {told:?}");
    }
}

#[test]
fn every_definition_is_lean_and_hinted() {
    let workspace = with_shipped_tools(&[]);
    let tools = listed(&workspace, Era::Modern, "all");
    for tool in tools.as_array().expect("a list") {
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint}: {tool}");
        }
        let both = tool["annotations"]["readOnlyHint"] == json!(true)
            && tool["annotations"]["destructiveHint"] == json!(true);
        assert!(!both, "{tool}");
        assert!(tool["outputSchema"].is_null(), "{tool}");
        assert!(tool["description"].is_string(), "{tool}");
    }
    let always: Vec<&str> = (tools.as_array().expect("a list").iter())
        .filter(|tool| tool["_meta"]["anthropic/alwaysLoad"] == json!(true))
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(always, ["file_edit", "file_read", "sandboxed_shell"]);
}

#[test]
fn instructions_are_short() {
    let workspace = Workspace::new();
    let mut server = ServerOptions::new(PROGRAM, &workspace).start();
    let client = json!({ "name": "test", "version": "1" });
    let parameters = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let answer = server.call("initialize", parameters);
    let text = answer["result"]["instructions"].as_str().expect("a text");
    assert!(text.chars().count() <= 700, "{text}");
    let scope = workspace.scope();
    for needed in [
        "sandbox",
        "/tmp",
        "home directory cannot be read",
        "await",
        "ahma_find",
        scope.to_str().expect("text"),
    ] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
}

/// Programs behave differently under variables that the model was not told of.
#[test]
fn instructions_say_which_variables_commands_see() {
    let workspace = Workspace::new();
    let mut server = ServerOptions::new(PROGRAM, &workspace)
        .env("CI", "1")
        .env("SOME_SECRET", "hidden")
        .env("RUSTUP_TOOLCHAIN", "stable")
        .start();
    let client = json!({ "name": "test", "version": "1" });
    let parameters = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let answer = server.call("initialize", parameters);
    let told = answer["result"]["instructions"].as_str().expect("a text");
    assert!(
        told.contains("PATH, HOME and toolchain variables, TERM=dumb, no CI; `env` sets more"),
        "{told}"
    );
    let arguments = json!({ "command": "env", "env": { "MORE": "yes" }, "execution_mode": "synchronous" });
    let result = server.tool("sandboxed_shell", arguments);
    let seen: Vec<&str> = text(&result)
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    for name in ["PATH", "HOME", "RUSTUP_TOOLCHAIN", "MORE"] {
        assert!(seen.contains(&name), "{name}: {seen:?}");
    }
    for name in ["CI", "SOME_SECRET"] {
        assert!(!seen.contains(&name), "{name}: {seen:?}");
    }
    assert!(text(&result).contains("TERM=dumb\n"), "{result}");
}

#[test]
fn the_cost_of_the_list_is_shown() {
    let workspace = with_tools();
    let shown = ServerOptions::new(PROGRAM, &workspace)
        .args(["--mode", "list-tools", "--format", "cost"])
        .command()
        .output()
        .expect("it runs");
    let shown = String::from_utf8(shown.stdout).expect("text");
    let bytes: Vec<usize> = shown
        .lines()
        .map(|line| line.split_whitespace().next().expect("a number"))
        .map(|number| number.parse().expect("a number"))
        .collect();
    let (total, each) = bytes.split_last().expect("lines");
    assert_eq!(*total, each.iter().sum::<usize>(), "{shown}");
    assert!(shown.contains("say\n") && shown.contains("in all, "), "{shown}");
}
