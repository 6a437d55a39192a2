//! Calls and the built-in tools, over raw lines in both eras.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace, children, wait_for};

use crate::session::{echo, options};

fn shell(server: &mut Server, command: &str, mode: &str) -> Value {
    server.tool(
        "sandboxed_shell",
        json!({"command": command, "execution_mode": mode}),
    )
}

fn start(server: &mut Server, command: &str) -> String {
    let started = shell(server, command, "asynchronous");
    // Where there are few cores, many at once wait for their turn.
    let status = &started["structuredContent"]["status"];
    assert!(status == "started" || status == "queued", "{started}");
    started["structuredContent"]["operation_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

fn text(result: &Value) -> &str {
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
    assert!(text(&result).contains("exit code 7"), "{}", text(&result));
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
fn an_asynchronous_call_answers_at_once_and_await_collects_it() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let gate = workspace.scope().join("gate");
        let started = shell(
            &mut server,
            "until [ -e gate ]; do sleep 0.02; done; echo through",
            "asynchronous",
        );
        let report = &started["structuredContent"];
        assert_eq!(report["status"], "started");
        assert_eq!(report["tool"], "sandboxed_shell");
        let id = report["operation_id"].as_str().expect("an id").to_owned();
        assert!(text(&started).contains(&id));

        let waited = server.tool("await", json!({"operation_ids": [id], "timeout_seconds": 0}));
        assert_eq!(waited["structuredContent"]["reason"], "time_is_up");
        assert_eq!(waited["structuredContent"]["operations"][0]["status"], "running");

        std::fs::write(&gate, "").expect("writable");
        let waited = server.tool("await", json!({"operation_ids": [id]}));
        assert_eq!(waited["structuredContent"]["reason"], "all_ended");
        assert_eq!(
            waited["structuredContent"]["operations"][0]["output"],
            "through\n"
        );
        assert!(text(&waited).contains("through"));
        std::fs::remove_file(&gate).expect("it is there");
    }
}

#[test]
fn await_without_ids_collects_each_result_once() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let ids = [start(&mut server, "echo one"), start(&mut server, "exit 3")];
    let waited = server.tool("await", json!({}));
    let operations = waited["structuredContent"]["operations"]
        .as_array()
        .expect("a list")
        .clone();
    let mut found: Vec<_> = operations
        .iter()
        .map(|row| row["operation_id"].as_str().expect("an id"))
        .collect();
    let mut expected: Vec<_> = ids.iter().map(String::as_str).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let waited = server.tool("await", json!({}));
    assert_eq!(waited["structuredContent"]["reason"], "nothing_to_wait_for");
}

#[test]
fn await_says_what_the_call_itself_would_have_said() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let refused = "echo x > /usr/ahma-probe";
    let told = shell(&mut server, refused, "synchronous");
    let told = text(&told);
    let id = start(&mut server, refused);
    let collected = server.tool("await", json!({"operation_ids": [id]}));
    let after_the_headline = |text: &str| text.split_once('\n').expect("lines").1.trim_end().to_owned();
    assert!(told.contains("hint: "), "{told}");
    assert_eq!(after_the_headline(text(&collected)), after_the_headline(told));
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
        // An address for documentation: nobody is there, whatever the network.
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
fn await_collects_no_more_than_fits_and_the_rest_next_time() {
    const COUNT: usize = 200;
    /// As `--help` and the documentation say.
    const RESULT_BYTES: usize = 16 * 1024;
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let mut expected: Vec<String> = (0..COUNT)
        .map(|number| start(&mut server, &format!("echo {number}; seq 1000")))
        .collect();
    let mut collected = Vec::new();
    loop {
        let waited = server.tool("await", json!({}));
        let report = &waited["structuredContent"];
        let ids: Vec<_> = report["operations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| row["operation_id"].as_str().expect("an id").to_owned())
            .collect();
        assert!(
            report.to_string().len() <= RESULT_BYTES + 1024,
            "{}",
            report.to_string().len()
        );
        assert!(
            text(&waited).len() <= RESULT_BYTES + 1024,
            "{}",
            text(&waited).len()
        );
        assert!(!ids.is_empty(), "{waited}");
        for row in report["operations"].as_array().expect("a list") {
            let shown = row["output"].as_str().expect("output");
            let (head, rest) = shown.split_once("[... ").unwrap_or((shown, ""));
            let tail = rest.split_once("...]\n").map_or("", |(_, tail)| tail);
            let left_out = row["left_out"]["bytes"].as_u64().unwrap_or(0);
            let kept = (head.len() + tail.len()) as u64;
            assert_eq!(
                kept + left_out,
                row["output_bytes"].as_u64().expect("a size"),
                "{row}"
            );
        }
        collected.extend(ids);
        let left_out = report["left_out"].as_u64().unwrap_or(0) as usize;
        assert_eq!(collected.len() + left_out, COUNT);
        if left_out == 0 {
            break;
        }
        assert!(text(&waited).contains(&format!("{left_out} more")), "{waited}");
    }
    collected.sort_unstable();
    expected.sort_unstable();
    assert_eq!(collected, expected);
}

#[test]
fn a_working_directory_that_is_not_there_is_a_mistake_of_the_call() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    std::fs::write(workspace.scope().join("file"), "").expect("writable");
    std::fs::create_dir(workspace.scope().join("inside")).expect("writable");
    std::os::unix::fs::symlink("inside", workspace.scope().join("link")).expect("writable");
    // What is there is nothing that a client could learn from the answer.
    std::os::unix::fs::symlink("/no/such/place", workspace.scope().join("out")).expect("writable");
    let mut server = options(&workspace).open(Era::Modern);
    for (directory, problem) in [
        ("inside", None),
        ("link", None),
        ("missing", Some("does not exist")),
        ("file", Some("is not a directory")),
        (
            "out",
            Some("leads to `/no/such/place`, outside the sandbox scope"),
        ),
    ] {
        for (tool, mut arguments) in [
            ("sandboxed_shell", json!({"command": "pwd"})),
            ("say", json!({"format": "x"})),
        ] {
            arguments["working_directory"] = json!(directory);
            arguments["execution_mode"] = json!("synchronous");
            let result = server.tool(tool, arguments);
            assert_eq!(
                result["isError"] == true,
                problem.is_some(),
                "{tool} {directory}: {result}"
            );
            if let Some(problem) = problem {
                let words = format!(
                    "working_directory` `{}` {problem}",
                    workspace.scope().join(directory).display()
                );
                assert!(text(&result).contains(&words), "{tool} {directory}: {result}");
                assert!(
                    result.get("structuredContent").is_none(),
                    "something was started: {result}"
                );
            }
        }
    }
}

/// The same rule as for paths in arguments: what `--allow-write` opens is allowed, and a link opens nothing.
#[test]
fn a_working_directory_may_be_what_the_user_opened_and_nothing_else() {
    let workspace = Workspace::new();
    let opened = workspace.home().join("opened");
    let inside = opened.join("inside");
    std::fs::create_dir_all(&inside).expect("writable");
    let scope = workspace.scope();
    std::os::unix::fs::symlink(&inside, scope.join("granted")).expect("writable");
    std::os::unix::fs::symlink("/etc", scope.join("out")).expect("writable");
    std::os::unix::fs::symlink("out", scope.join("by-the-way")).expect("writable");
    let mut server = options(&workspace)
        .args(["--allow-write", opened.to_str().expect("text")])
        .open(Era::Modern);
    let mut run = |directory: &str| {
        let arguments = json!({"command": "touch here; pwd -P", "execution_mode": "synchronous", "working_directory": directory});
        server.tool("sandboxed_shell", arguments)
    };
    for directory in [inside.to_str().expect("text"), "granted"] {
        let result = run(directory);
        assert_eq!(
            text(&result).trim_end(),
            inside.to_str().expect("text"),
            "{result}"
        );
    }
    assert!(inside.join("here").exists());
    for (directory, leads_to) in [("out", "/etc"), ("by-the-way", "/etc"), ("out/ssl", "/etc/ssl")] {
        let result = run(directory);
        assert_eq!(result["isError"], true, "{result}");
        assert!(
            result.get("structuredContent").is_none(),
            "it was started: {result}"
        );
        let words = format!("leads to `{leads_to}`, outside the sandbox scope");
        assert!(text(&result).contains(&words), "{directory}: {}", text(&result));
    }
}

#[test]
fn a_missing_directory_is_listed_with_the_other_mistakes() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let result = server.tool(
        "sandboxed_shell",
        json!({"command": "pwd", "colour": 1, "working_directory": "missing"}),
    );
    assert_eq!(result["isError"], true);
    for words in ["`colour`", "does not exist"] {
        assert!(text(&result).contains(words), "{}", text(&result));
    }
}

#[test]
fn rows_say_what_runs_and_what_it_printed_last() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let command = "echo compiling; sleep 600";
    let id = start(&mut server, command);
    let status = wait_for("the line", || {
        let status = server.tool("status", json!({"operation_ids": [id]}));
        let row = &status["structuredContent"]["operations"][0];
        (row["newest_line"] == "compiling").then_some(status)
    });
    let row = &status["structuredContent"]["operations"][0];
    assert_eq!(row["command"], command);
    for words in [
        &format!("{id} (sandboxed_shell: {command}) running"),
        "newest line: compiling",
    ] {
        assert!(text(&status).contains(words), "{}", text(&status));
    }
    let cancelled = server.tool("cancel", json!({"operation_id": id}));
    assert_eq!(cancelled["structuredContent"]["command"], command);
    assert!(text(&cancelled).contains(command), "{}", text(&cancelled));
}

#[test]
fn a_call_that_waits_for_its_turn_says_so() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .args(["--max-operations", "1", "--sync-wait", "1s"])
        .open(Era::Modern);
    let running = start(&mut server, "sleep 600");
    for position in [1, 2] {
        let result = shell(&mut server, "echo turn", "asynchronous");
        let report = &result["structuredContent"];
        assert_eq!(report["status"], "queued", "{result}");
        assert_eq!(report["queue_position"], position);
        for words in ["queued", "--max-operations", "await"] {
            assert!(text(&result).contains(words), "{}", text(&result));
        }
    }
    let result = shell(&mut server, "echo turn", "synchronous");
    assert_eq!(result["structuredContent"]["status"], "queued", "{result}");
    assert_eq!(result["structuredContent"]["queue_position"], 3);
    for words in ["it has not begun", "--max-operations", "await"] {
        assert!(text(&result).contains(words), "{}", text(&result));
    }
    server.tool("cancel", json!({"operation_id": running}));
    let waited = server.tool("await", json!({}));
    assert_eq!(waited["structuredContent"]["reason"], "all_ended", "{waited}");
}

#[test]
fn a_call_that_finds_no_place_in_the_line_fails_at_once() {
    const LINE: usize = 10_000;
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .args(["--max-operations", "1"])
        .open(Era::Modern);
    start(&mut server, "sleep 1000");
    let call = json!({
        "name": "sandboxed_shell",
        "arguments": {"command": "true", "execution_mode": "asynchronous"},
    });
    let ids: Vec<_> = (0..LINE)
        .map(|_| server.request("tools/call", call.clone()))
        .collect();
    for id in ids {
        assert_eq!(
            server.answer(id)["result"]["structuredContent"]["status"],
            "queued"
        );
    }
    let refused = shell(&mut server, "true", "asynchronous");
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(refused["structuredContent"]["status"], "failed");
    assert!(text(&refused).contains("the queue is full"), "{}", text(&refused));
}

#[test]
fn status_of_chosen_operations_is_short() {
    let workspace = Workspace::new();
    let mut missing = echo("absent");
    missing["availability_check"] = json!("no-such-program-at-all --version");
    workspace.write_tool("absent.json", &missing);
    let mut server = options(&workspace)
        .args(["--max-result-bytes", "2K"])
        .open(Era::Modern);
    wait_for("the probe", || {
        text(&server.tool("status", json!({})))
            .contains("absent is not available")
            .then_some(())
    });
    let ids: Vec<_> = (0..30)
        .map(|number| start(&mut server, &format!("echo {number}")))
        .collect();
    let status = server.tool("status", json!({"operation_ids": ids}));
    assert!(!text(&status).contains("not available"), "{}", text(&status));
    let report = &status["structuredContent"];
    assert!(report.get("tools").is_none(), "{report}");
    let shown = report["operations"].as_array().expect("rows").len();
    let left_out = report["operations_left_out"].as_u64().expect("some");
    assert_eq!(shown as u64 + left_out, 30);
    assert!(
        shown > 0 && report["operations"].to_string().len() < 3 << 10,
        "{report}"
    );
    assert!(
        text(&status).contains(&format!("{left_out} more would not fit")),
        "{}",
        text(&status)
    );
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
fn an_empty_list_of_operations_is_none_and_each_is_reported_once() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let ids = [start(&mut server, "sleep 600"), start(&mut server, "sleep 600")];
    let reported = |result: &Value| -> Vec<Value> {
        let rows = result["structuredContent"]["operations"].as_array();
        let rows = rows.expect("reports");
        rows.iter().map(|row| row["operation_id"].clone()).collect()
    };
    let repeated = json!([ids[1], ids[0], ids[1]]);
    for tool in ["await", "status"] {
        let mut ask = |operation_ids: Value| {
            let mut arguments = json!({ "operation_ids": operation_ids });
            if tool == "await" {
                arguments["timeout_seconds"] = json!(0);
            }
            reported(&server.tool(tool, arguments))
        };
        assert_eq!(ask(json!([])), ids, "{tool}");
        assert_eq!(ask(repeated.clone()), [&*ids[1], &*ids[0]], "{tool}");
    }
}

#[test]
fn many_unknown_operations_are_counted_and_too_many_refused() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    for tool in ["await", "status"] {
        let mut ask = |count: usize| {
            let ids: Vec<_> = (0..count).map(|number| format!("op_none{number}")).collect();
            let refused = server.tool(tool, json!({ "operation_ids": ids }));
            assert_eq!(refused["isError"], true, "{refused}");
            text(&refused).to_owned()
        };
        let unknown = ask(1_000);
        assert!(
            unknown.contains("no operation is called op_none9;") && !unknown.contains("op_none10"),
            "{unknown}"
        );
        assert!(
            unknown.ends_with("operation_ids: 990 more are not known"),
            "{unknown}"
        );
        let too_many = ask(1_001);
        assert!(
            too_many.contains("operation_ids: expected an array of at most 1000 strings"),
            "{too_many}"
        );
    }
}

#[test]
fn await_any_returns_with_the_first() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let slow = start(&mut server, "sleep 600");
    let quick = start(&mut server, "echo quick");
    let waited = server.tool("await", json!({"operation_ids": [slow, quick], "until": "any"}));
    assert_eq!(waited["structuredContent"]["reason"], "one_ended");
    assert_eq!(
        waited["structuredContent"]["operations"][0]["operation_id"],
        quick
    );
    assert_eq!(waited["structuredContent"]["operations"][1]["status"], "running");
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
        waited["structuredContent"]["operations"][0]["output"],
        "early\nlate\n"
    );
}

#[test]
fn a_synchronous_call_is_reported_on_after_it_answered() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).args(["--sync-wait", "1s"]).open(Era::Legacy);
    server.call("logging/setLevel", json!({"level": "info"}));
    let params = json!({
        "name": "sandboxed_shell",
        "arguments": {
            "command": "echo early; until [ -e gate ]; do sleep 0.02; done; echo late; until [ -e end ]; do sleep 0.02; done",
            "execution_mode": "synchronous",
        },
        "_meta": {"progressToken": "mine"},
    });
    let id = server.request("tools/call", params);
    let answer = server.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["status"], "running");
    std::fs::write(workspace.scope().join("gate"), "").expect("writable");
    // Each line once: the first while the call waited, the second while nobody did.
    let mut output = String::new();
    while !output.contains("late") {
        let told = server.notification("notifications/message");
        output.push_str(told["params"]["data"]["output"].as_str().expect("output"));
    }
    assert_eq!(output, "early\nlate\n");
    std::fs::write(workspace.scope().join("end"), "").expect("writable");
    let end = server.expect("the end", |message| {
        message["method"] == "notifications/progress" && message.to_string().contains("completed")
    });
    assert_eq!(end["params"]["progressToken"], "mine", "{end}");
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
fn cancel_answers_when_the_processes_are_gone() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let id = start(
            &mut server,
            "echo partial; touch began; trap '' TERM; sleep 600 & sleep 600",
        );
        wait_for("the command to begin", || {
            workspace.scope().join("began").exists().then_some(())
        });
        let result = server.tool("cancel", json!({"operation_id": id, "reason": "changed my mind"}));
        assert_eq!(result["structuredContent"]["status"], "cancelled");
        assert_eq!(result["structuredContent"]["output"], "partial\n");
        assert!(text(&result).contains("changed my mind"));
        assert_ne!(result["isError"], true);
        let again = server.tool("cancel", json!({"operation_id": id}));
        assert_eq!(again["structuredContent"]["status"], "cancelled");
        std::fs::remove_file(workspace.scope().join("began")).expect("it is there");
    }
}

/// A cancelled request has no answer, so nobody would know the operation.
#[test]
fn a_call_that_is_cancelled_at_once_starts_nothing() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let call = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {
        "name": "sandboxed_shell", "arguments": {"command": "sleep 600", "execution_mode": "asynchronous"}}});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}});
    server.send_bytes(format!("{call}\n{cancelled}\n").as_bytes());
    let status = server.tool("status", json!({}));
    assert_eq!(status["structuredContent"]["operations"], json!([]), "{status}");
}

#[test]
fn a_timeout_ends_the_command_and_keeps_what_it_printed() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let arguments =
        json!({"command": "echo partial; sleep 600", "execution_mode": "synchronous", "timeout_seconds": 5});
    let result = server.tool("sandboxed_shell", arguments);
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["status"], "timed_out");
    assert_eq!(result["structuredContent"]["output"], "partial\n");
}

#[test]
fn cancelling_a_request_stops_its_own_synchronous_command_and_nothing_else() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let other = start(&mut server, "sleep 600");
        let call = json!({
            "name": "sandboxed_shell",
            "arguments": {"command": "touch began; sleep 600", "execution_mode": "synchronous"},
        });
        let request = server.request("tools/call", call);
        wait_for("the command to begin", || {
            workspace.scope().join("began").exists().then_some(())
        });
        let waiting = server.request(
            "tools/call",
            json!({"name": "await", "arguments": {"operation_ids": [other]}}),
        );
        server.notify("notifications/cancelled", json!({"requestId": request}));
        server.notify("notifications/cancelled", json!({"requestId": waiting}));
        let statuses = wait_for_statuses(&mut server, |statuses| statuses.contains(&"cancelled".to_owned()));
        assert_eq!(
            statuses.iter().filter(|status| *status == "running").count(),
            1,
            "{statuses:?}"
        );
        let answered = server.others_by_now();
        let about = |id: i64| answered.iter().any(|message| message["id"] == id);
        assert!(
            !about(request) && !about(waiting),
            "cancelled requests are not answered: {answered:?}"
        );
        std::fs::remove_file(workspace.scope().join("began")).expect("it is there");
    }
}

#[test]
fn cancelled_searches_hold_nobody_up() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let printed = server.tool(
            "sandboxed_shell",
            json!({"command": "yes 'many words of a line that is searched slowly' | head -n 1000000", "execution_mode": "synchronous"}),
        );
        let id = &printed["structuredContent"]["operation_id"];
        let slow =
            json!({"name": "output", "arguments": {"operation_id": id, "grep": r"(\w+\W*){1,60}zzzz$"}});
        let searches = [(); 2].map(|()| server.request("tools/call", slow.clone()));
        let lines = server.tool(
            "output",
            json!({"operation_id": id, "from_line": 5, "max_lines": 1}),
        );
        assert_eq!(lines["structuredContent"]["first_line"], 5, "{lines}");
        for search in searches {
            server.notify("notifications/cancelled", json!({"requestId": search}));
        }
        let found = server.tool("output", json!({"operation_id": id, "grep": "line"}));
        assert_eq!(found["structuredContent"]["matches"], 1_000_000, "{found}");
    }
}

fn wait_for_statuses(server: &mut Server, done: impl Fn(&[String]) -> bool) -> Vec<String> {
    wait_for("the operations to stand so", || {
        let status = server.tool("status", json!({}));
        let rows = status["structuredContent"]["operations"]
            .as_array()
            .expect("rows")
            .clone();
        let statuses: Vec<_> = rows
            .iter()
            .map(|row| row["status"].as_str().expect("a status").to_owned())
            .collect();
        done(&statuses).then_some(statuses)
    })
}

#[test]
fn output_is_read_in_parts_and_searched() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .args(["--max-result-bytes", "2K"])
        .open(Era::Modern);
    let result = shell(
        &mut server,
        "for i in $(seq 5000); do echo line $i; done",
        "synchronous",
    );
    let report = &result["structuredContent"];
    assert_eq!(report["output_lines"], 5000);
    let left_out = &report["left_out"];
    assert!(left_out["lines"].as_u64().expect("a count") > 4000, "{left_out}");
    let id = report["operation_id"].as_str().expect("an id").to_owned();

    let page = server.tool(
        "output",
        json!({"operation_id": id, "from_line": left_out["from_line"], "max_lines": 2}),
    );
    let first = left_out["from_line"].as_u64().expect("a line");
    assert_eq!(
        page["structuredContent"]["text"],
        format!("line {first}\nline {}\n", first + 1)
    );
    assert_eq!(page["structuredContent"]["next_line"], first + 2);
    let tail = server.tool("output", json!({"operation_id": id, "tail": 2}));
    assert_eq!(tail["structuredContent"]["text"], "line 4999\nline 5000\n");
    let found = server.tool(
        "output",
        json!({"operation_id": id, "grep": "e 77$", "context": 1}),
    );
    assert_eq!(
        found["structuredContent"]["text"],
        "76-line 76\n77:line 77\n78-line 78\n"
    );
    assert_eq!(found["structuredContent"]["matches"], 1);

    for (wrong, word) in [
        (json!({"operation_id": id, "grep": "("}), "regular expression"),
        (json!({"operation_id": id, "tail": 1, "from_line": 2}), "combined"),
        (json!({"operation_id": "op_nothing"}), "op_nothing"),
        (json!({}), "operation_id"),
    ] {
        let refused = server.tool("output", wrong);
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains(word), "{}", text(&refused));
    }
}

#[test]
fn progress_rises_while_a_request_is_open_and_stops_with_its_answer() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let request = server.request(
            "tools/call",
            json!({
                "name": "sandboxed_shell",
                "arguments": {"command": "for i in 1 2 3 4 5 6; do echo step $i; sleep 0.15; done", "execution_mode": "synchronous"},
                "_meta": {"progressToken": "tok"},
            }),
        );
        let mut values = Vec::new();
        let mut messages = String::new();
        loop {
            let message = server.expect("progress or the answer", |_| true);
            if message["id"] == request {
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            assert_eq!(message["params"]["progressToken"], "tok");
            values.push(message["params"]["progress"].as_f64().expect("a number"));
            messages.push_str(message["params"]["message"].as_str().expect("text"));
        }
        assert!(values.len() >= 2, "{values:?}");
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        assert!(messages.contains("step "), "{messages}");
        let late = server.others_by_now();
        assert!(late.is_empty(), "after the answer: {late:?}");
    }
}

/// Makes a synchronous call with a progress token, and counts the notifications until its answer.
fn count_progress(server: &mut Server, command: &str) -> usize {
    let arguments = json!({"command": command, "execution_mode": "synchronous"});
    let call = json!({"name": "sandboxed_shell", "arguments": arguments, "_meta": {"progressToken": 1}});
    let request = server.request("tools/call", call);
    let mut count = 0;
    while server.expect("progress or the answer", |_| true)["id"] != request {
        count += 1;
    }
    count
}

#[test]
fn a_chatty_command_is_told_of_at_most_five_times_a_second() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let asked = Instant::now();
    let count = count_progress(&mut server, "for i in $(seq 60); do echo $i; sleep 0.02; done");
    let allowed = asked.elapsed().as_millis() / 200 + 1;
    assert!(count as u128 <= allowed, "{count} in {:?}", asked.elapsed());
    assert!(count > 0);
}

#[test]
fn a_silent_command_is_told_of_by_a_heartbeat() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let arguments =
        json!({"command": "until [ -e seen ]; do sleep 0.1; done", "execution_mode": "synchronous"});
    let call = json!({"name": "sandboxed_shell", "arguments": arguments, "_meta": {"progressToken": 1}});
    let request = server.request("tools/call", call);
    // One when it begins to run, and one after ten quiet seconds.
    for _ in 0..2 {
        server.notification("notifications/progress");
    }
    std::fs::write(workspace.scope().join("seen"), "").expect("writable");
    server.answer(request);
}

#[test]
fn the_end_of_an_asynchronous_operation_is_pushed_to_the_older_era_only() {
    let workspace = Workspace::new();
    let call = |meta: Value| json!({"name": "sandboxed_shell", "arguments": {"command": "echo pushed"}, "_meta": meta});
    let mut server = options(&workspace).open(Era::Legacy);
    let request = server.request("tools/call", call(json!({"progressToken": 77})));
    let id = server.answer(request)["result"]["structuredContent"]["operation_id"].clone();
    let pushed = server.notification("notifications/progress");
    assert_eq!(pushed["params"]["progressToken"], 77);
    let message = pushed["params"]["message"].as_str().expect("text");
    assert!(
        message.contains("pushed") && message.contains("completed"),
        "{message}"
    );
    assert!(message.contains(id.as_str().expect("an id")), "{message}");

    let request = server.request("tools/call", call(json!({})));
    let id = server.answer(request)["result"]["structuredContent"]["operation_id"].clone();
    assert_eq!(
        server.notification("notifications/progress")["params"]["progressToken"],
        id
    );

    let mut server = options(&workspace).open(Era::Modern);
    let request = server.request("tools/call", call(json!({"progressToken": 77})));
    server.answer(request);
    server.tool("await", json!({}));
    let late = server.others_by_now();
    assert!(late.is_empty(), "{late:?}");
}

#[test]
fn operations_are_resources_and_changes_are_told() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let id = start(
        &mut server,
        "echo resource; until [ -e gate ]; do sleep 0.02; done",
    );
    let uri = format!("ahma://operations/{id}");
    assert!(server.call("resources/subscribe", json!({"uri": uri}))["result"].is_object());
    for unknown in [
        "ahma://no",
        "ahma://operations/op_nope",
        "ahma://operations/op_nope/output",
    ] {
        let refused = server.call("resources/subscribe", json!({"uri": unknown}));
        assert_eq!(refused["error"]["code"], -32002, "{unknown}: {refused}");
    }
    let read = |server: &mut Server, uri: &str| {
        server.call("resources/read", json!({"uri": uri}))["result"]["contents"][0]["text"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert!(read(&mut server, "ahma://operations").contains(&id));
    assert!(read(&mut server, "ahma://status").contains("sandbox"));
    std::fs::write(workspace.scope().join("gate"), "").expect("writable");
    assert_eq!(
        server.notification("notifications/resources/updated")["params"]["uri"],
        uri
    );
    server.tool("await", json!({"operation_ids": [id]}));
    assert_eq!(read(&mut server, &format!("{uri}/output")), "resource\n");
    assert!(read(&mut server, &uri).contains("completed"));
    let listed = server.call("resources/list", json!({}));
    assert_eq!(listed["result"]["resources"].as_array().map(Vec::len), Some(2));
    let templates = server.call("resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn structured_results_fit_their_output_schemas() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let listed = server.call("tools/list", json!({}))["result"]["tools"].clone();
    let schema = |name: &str| {
        let tool = listed
            .as_array()
            .expect("a list")
            .iter()
            .find(|tool| tool["name"] == name)
            .expect("listed");
        assert!(
            tool["annotations"]["readOnlyHint"].is_boolean(),
            "{name} is annotated"
        );
        jsonschema::draft202012::new(&tool["outputSchema"]).expect("a schema")
    };
    let id = start(&mut server, "sleep 600");
    let calls = [
        (
            "sandboxed_shell",
            json!({"command": "echo x", "execution_mode": "synchronous"}),
        ),
        (
            "sandboxed_shell",
            json!({"command": "exit 4", "execution_mode": "synchronous"}),
        ),
        ("sandboxed_shell", json!({"command": "true"})),
        ("await", json!({"timeout_seconds": 0})),
        ("status", json!({})),
        ("output", json!({"operation_id": id, "tail": 5})),
        ("output", json!({"operation_id": id, "grep": "x"})),
        ("cancel", json!({"operation_id": id})),
    ];
    for (name, arguments) in calls {
        let result = server.tool(name, arguments);
        let schema = schema(name);
        let problems: Vec<_> = schema
            .iter_errors(&result["structuredContent"])
            .map(|error| error.to_string())
            .collect();
        assert!(problems.is_empty(), "{name}: {problems:?} in {result}");
    }
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

#[test]
fn the_death_of_the_helper_process_interrupts_nothing() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::BOTH[0]);
    let running = start(
        &mut server,
        "while ! test -e go; do sleep 0.05; done; echo survived",
    );
    let killed = *children(server.pid()).first().expect("a helper");
    let pid = rustix::process::Pid::from_raw(killed).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_for("the helper to die", || {
        let stat = std::fs::read_to_string(format!("/proc/{killed}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    // More calls than shells can have been warm, so that some need a new helper.
    for _ in 0..20 {
        let result = shell(&mut server, "echo again", "synchronous");
        assert_eq!(result["structuredContent"]["output"], "again\n");
    }
    assert!(!children(server.pid()).contains(&killed), "a new helper serves");
    std::fs::write(workspace.scope().join("go"), "").unwrap();
    let collected = server.tool("await", json!({"operation_ids": [running]}));
    let operation = &collected["structuredContent"]["operations"][0];
    assert_eq!(
        (&operation["status"], &operation["output"]),
        (&json!("completed"), &json!("survived\n"))
    );
}

#[test]
fn calls_that_a_dying_helper_had_not_begun_are_begun_by_another() {
    const ROUNDS: u64 = 15;
    const CALLS: usize = 12;
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    for tier in ["full", "core"] {
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Modern);
        for round in 0..ROUNDS {
            let say = json!({"name": "say", "arguments": {"format": "said"}});
            let calls: Vec<_> = (0..CALLS)
                .map(|_| server.request("tools/call", say.clone()))
                .collect();
            // At another moment each time; whichever it is, nothing may be lost.
            std::thread::sleep(Duration::from_millis(round));
            for helper in children(server.pid()) {
                let pid = rustix::process::Pid::from_raw(helper).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
            for call in calls {
                let result = server.answer(call)["result"].clone();
                assert_eq!(result["structuredContent"]["output"], "said", "{tier}: {result}");
            }
        }
    }
}

#[test]
fn a_helper_that_stands_still_keeps_nobody_from_stopping() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let helper = *children(server.pid()).first().expect("a helper");
    let pid = rustix::process::Pid::from_raw(helper).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    // More than can have been warm, so that some have to be begun by the helper.
    let impatient = json!({
        "name": "sandboxed_shell",
        "arguments": {"command": "true", "execution_mode": "synchronous", "timeout_seconds": 1},
    });
    let calls: Vec<_> = (0..20)
        .map(|_| server.request("tools/call", impatient.clone()))
        .collect();
    let ends: Vec<_> = calls
        .into_iter()
        .map(|call| server.answer(call)["result"]["structuredContent"]["status"].clone())
        .collect();
    assert!(ends.contains(&json!("timed_out")), "{ends:?}");
    let waiting = start(&mut server, "touch ran");
    let cancelled = server.tool("cancel", json!({"operation_id": waiting}));
    assert_eq!(
        cancelled["structuredContent"]["status"], "cancelled",
        "{cancelled}"
    );
    server.close_input();
    assert!(server.wait().success());
    assert!(!workspace.scope().join("ran").exists());
}

#[test]
fn a_command_of_the_core_tier_dies_with_its_owner_also_without_a_helper() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .args(["--sandbox-tier", "core"])
        .open(Era::Modern);
    start(&mut server, "echo $$ > command; exec sleep 1000");
    let command = wait_for("the command", || {
        let written = std::fs::read_to_string(workspace.scope().join("command")).ok()?;
        written.trim().parse::<i32>().ok()
    });
    let stat = std::fs::read_to_string(format!("/proc/{command}/stat")).unwrap();
    let owner = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap();
    let owner = owner.parse::<i32>().unwrap();
    let helper = *children(server.pid()).first().expect("a helper");
    for process in [helper, owner] {
        let pid = rustix::process::Pid::from_raw(process).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    wait_for("the end of the command", || {
        let stat = std::fs::read_to_string(format!("/proc/{command}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

#[test]
fn a_server_whose_parent_ignores_or_blocks_signals_serves() {
    const IGNORE: &str = "import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD})
os.execv(sys.argv[1], sys.argv[1:])";
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let mut server = ServerOptions::new("python3", &workspace)
            .args([
                "-c",
                IGNORE,
                env!("CARGO_BIN_EXE_ahma_mcp"),
                "--sandbox-tier",
                tier,
            ])
            .open(Era::Modern);
        let result = shell(&mut server, "sh -c 'exit 3'; echo $?", "synchronous");
        assert_eq!(result["structuredContent"]["output"], "3\n", "{tier}");
        server.close_input();
        server.wait();
    }
}

#[test]
fn a_scope_that_is_made_anew_is_the_scope_again() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let scope = workspace.scope();
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Legacy);
        shell(&mut server, "echo old > file", "synchronous");
        let running = start(
            &mut server,
            "touch begun; while test -e file; do sleep 0.02; done; echo it is empty",
        );
        wait_for("the command to begin", || {
            scope.join("begun").exists().then_some(())
        });

        std::fs::remove_dir_all(&scope).unwrap();
        let refused = shell(&mut server, "true", "synchronous");
        assert!(
            text(&refused).contains("cannot be used any more") && text(&refused).contains("project"),
            "{tier}: {refused}"
        );

        std::fs::create_dir(&scope).unwrap();
        std::fs::write(scope.join("file"), "new").unwrap();
        let there = shell(&mut server, "cat file; echo made > made", "synchronous");
        assert_eq!(text(&there), "new", "{tier}: {there}");
        assert_eq!(std::fs::read_to_string(scope.join("made")).unwrap(), "made\n");
        shell(&mut server, "touch ../outside", "synchronous");
        assert!(!scope.with_file_name("outside").exists(), "{tier}");
        let ended = server.tool("await", json!({"operation_ids": [running]}));
        assert!(text(&ended).contains("it is empty"), "{tier}: {ended}");

        // A link in its place leads nowhere.
        std::fs::rename(&scope, workspace.home().join("moved")).unwrap();
        std::os::unix::fs::symlink(workspace.home(), &scope).unwrap();
        let refused = shell(&mut server, "touch here", "synchronous");
        assert!(
            text(&refused).contains("cannot be used any more"),
            "{tier}: {refused}"
        );
        assert!(!workspace.home().join("here").exists());
    }
}
