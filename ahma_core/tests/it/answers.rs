//! Texts that a model reads: results and waiting of a server without flags.

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, wait_for};

use crate::{calls::text, session::options};

fn server(workspace: &Workspace) -> Server {
    options(workspace).with_defaults().open(Era::Legacy)
}

fn shell(server: &mut Server, command: &str) -> Value {
    server.tool("sandboxed_shell", json!({ "command": command }))
}

fn id(result: &Value) -> Value {
    result["_meta"]["ahma/operation"]["operation_id"].clone()
}

#[test]
fn a_success_is_its_output_as_text_only() {
    let workspace = Workspace::new();
    for era in [Era::Legacy, Era::Modern] {
        let mut server = options(&workspace).with_defaults().open(era);
        for (command, expected) in [("echo one; echo two >&2", "one\ntwo\n"), ("true", "(no output)")] {
            let result = shell(&mut server, command);
            assert_eq!(text(&result), expected, "{era:?}");
            assert!(result.get("structuredContent").is_none(), "{result}");
            assert_eq!(
                result["_meta"]["ahma/operation"]["status"], "completed",
                "{result}"
            );
            assert_eq!(result["_meta"]["ahma/operation"]["exit_code"], 0, "{result}");
        }
        let tools = server.call("tools/list", json!({}));
        let schemas = tools["result"]["tools"].as_array().unwrap().iter();
        assert_eq!(
            schemas.filter(|tool| tool.get("outputSchema").is_some()).count(),
            0
        );
    }
}

#[test]
fn a_failure_begins_with_its_exit_code_and_does_not_repeat_the_command() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let result = shell(&mut server, "echo wrong; exit 7");
    assert_eq!(result["isError"], true);
    assert_eq!(result["_meta"]["ahma/operation"]["exit_code"], 7);
    let (first, rest) = text(&result).split_once('\n').unwrap();
    assert!(
        first.starts_with("exit 7 after ") && first.contains(" s · op_"),
        "{first}"
    );
    assert_eq!(rest, "wrong\n");
}

#[test]
fn a_request_may_ask_for_data() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let arguments = json!({ "command": "echo hi" });
    let params =
        json!({ "name": "sandboxed_shell", "arguments": arguments, "_meta": { "ahma/structured": true } });
    let result = server.call("tools/call", params);
    assert_eq!(
        result["result"]["structuredContent"]["output"], "hi\n",
        "{result}"
    );
}

#[test]
fn a_long_failure_is_cut_at_lines_shows_its_end_and_says_how_to_read_the_rest() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let result = shell(
        &mut server,
        "seq 1 20000 | sed 's/^/line /'; echo assertion failed; exit 1",
    );
    let shown = text(&result);
    assert!(shown.len() <= 7_600, "{}", shown.len());
    assert!(shown.ends_with("assertion failed\n"), "{shown}");
    let (head, tail) = shown.split_once("\n[... lines ").unwrap();
    assert!(
        head.len() * 2 < tail.len(),
        "mostly its end: {} and {}",
        head.len(),
        tail.len()
    );
    let call = tail
        .split_once("output {")
        .and_then(|(_, rest)| rest.split_once('}'))
        .unwrap()
        .0;
    let arguments: Value = serde_json::from_str(&format!("{{{call}}}")).unwrap();
    assert_eq!(arguments["operation_id"], id(&result));
    let next = head.lines().count();
    assert_eq!(
        arguments["from_line"], next,
        "the first line is not of the output"
    );
    let page = server.tool("output", arguments);
    assert!(text(&page).starts_with(&format!("line {next}\n")), "{page}");
}

#[test]
fn a_short_command_in_the_background_answers_with_its_result() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let result = shell(&mut server, "sleep 0.3; echo done");
    assert_eq!(text(&result), "done\n");
    let left = server.tool("await", json!({}));
    assert!(text(&left).starts_with("nothing to wait for"), "{left}");
}

#[test]
fn a_longer_one_answers_with_its_id_and_what_it_printed() {
    let workspace = Workspace::new();
    let go = workspace.scope().join("go");
    let mut server = options(&workspace)
        .with_defaults()
        .args(["--inline-wait", "5s"])
        .open(Era::Legacy);
    let result = shell(
        &mut server,
        "echo early; until test -e go; do sleep 0.05; done; echo late",
    );
    let shown = text(&result);
    let (first, rest) = shown.split_once('\n').unwrap();
    assert!(
        first.starts_with("still running after ") && first.contains(" · op_"),
        "{first}"
    );
    assert_eq!(rest, "early\n");
    std::fs::write(go, "").unwrap();
    let collected = server.tool("await", json!({}));
    assert!(text(&collected).contains("late\n"), "{collected}");
}

#[test]
fn a_request_that_is_cancelled_during_the_short_wait_ends_its_command() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .with_defaults()
        .args(["--inline-wait", "600s"])
        .open(Era::Legacy);
    let begun = workspace.scope().join("begun");
    let arguments = json!({ "command": "touch begun; sleep 1000" });
    let request = server.request(
        "tools/call",
        json!({ "name": "sandboxed_shell", "arguments": arguments }),
    );
    wait_for("the command", || begun.exists().then_some(()));
    server.notify("notifications/cancelled", json!({ "requestId": request }));
    wait_for("its end", || {
        let status = server.tool("status", json!({}));
        text(&status).contains("cancelled").then_some(())
    });
}

#[test]
fn a_search_looks_at_lines_as_they_are_seen() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let result = shell(
        &mut server,
        r"printf '\033[1;31mE   assert 9 == 8\033[0m\r\n10%%\r100%%\n'",
    );
    for pattern in ["^E ", "8$", "^100%$"] {
        let found = server.tool("output", json!({ "operation_id": id(&result), "grep": pattern }));
        assert!(text(&found).contains("1 line of 2 matches"), "{pattern}: {found}");
    }
    let shown = server.tool("output", json!({ "operation_id": id(&result) }));
    assert!(text(&shown).starts_with("E   assert 9 == 8\n100%\n"), "{shown}");
    let raw = server.tool("output", json!({ "operation_id": id(&result), "raw": true }));
    assert!(text(&raw).contains("\u{1b}[1;31mE"), "{raw}");
}

#[test]
fn output_shows_the_end_and_cancel_the_last_lines() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let arguments = json!({ "command": "seq 1 5000; sleep 1000", "execution_mode": "asynchronous" });
    let id = id(&server.tool("sandboxed_shell", arguments));
    wait_for("the output", || {
        let shown = server.tool("output", json!({ "operation_id": id }));
        text(&shown).contains("lines 4901 to 5000 of 5000").then_some(())
    });
    let cancelled = server.tool("cancel", json!({ "operation_id": id }));
    let told = text(&cancelled);
    assert!(
        told.starts_with("cancelled after ") && told.contains("\n4981\n4982\n"),
        "{told}"
    );
    assert!(!told.contains("\n4980\n") && told.len() < 400, "{told}");
}

#[test]
fn await_tells_only_what_is_new() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .with_defaults()
        .args(["--inline-wait", "5s"])
        .open(Era::Legacy);
    let result = shell(
        &mut server,
        "echo one; until test -e two; do sleep 0.05; done; echo two; until test -e go; do sleep 0.05; done; echo three",
    );
    assert!(text(&result).ends_with("\none\n"), "{result}");
    std::fs::write(workspace.scope().join("two"), "").unwrap();
    let second = server.tool("await", json!({ "until_line": "^two$" }));
    assert!(
        text(&second).starts_with("still running after ") && text(&second).ends_with("\ntwo\n"),
        "{second}"
    );
    assert!(!text(&second).contains("one"), "{second}");
    std::fs::write(workspace.scope().join("go"), "").unwrap();
    let third = server.tool("await", json!({ "operation_ids": [id(&result)] }));
    assert!(
        text(&third).starts_with("completed after ") && text(&third).ends_with("\nthree\n"),
        "{third}"
    );
    assert!(!text(&third).contains("two"), "{third}");
}

#[test]
fn await_returns_as_soon_as_anything_has_ended() {
    let workspace = Workspace::new();
    let mut server = server(&workspace);
    let background = |command: &str| json!({ "command": command, "execution_mode": "asynchronous" });
    let slow = id(&server.tool("sandboxed_shell", background("echo listening; sleep 1000")));
    let ready = server.tool("await", json!({ "until_line": "listen" }));
    assert!(text(&ready).ends_with("\nlistening\n"), "{ready}");
    server.tool("sandboxed_shell", background("echo quick"));
    let waited = server.tool("await", json!({}));
    assert!(text(&waited).contains("\nquick\n"), "{waited}");
    assert!(text(&waited).contains(slow.as_str().unwrap()), "{waited}");
}

#[test]
fn status_is_short() {
    let workspace = Workspace::new();
    workspace.write_tool(
        "missing.json",
        &json!({ "name": "missing", "description": "Is not there.", "command": "no-such-program" }),
    );
    let mut server = server(&workspace);
    for number in 0..9 {
        shell(&mut server, &format!("echo {number}"));
    }
    let status = server.tool("status", json!({}));
    let shown = text(&status);
    assert!(shown.len() <= 600, "{} bytes:\n{shown}", shown.len());
    assert!(shown.contains("echo 8") && shown.contains("echo 4"), "{shown}");
    assert!(
        !shown.contains("echo 3") && shown.contains("and 4 more"),
        "{shown}"
    );
}
