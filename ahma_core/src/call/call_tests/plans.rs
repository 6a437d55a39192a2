//! The rest of a plan: mode, timeout, environment, lifetime, description.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use super::{argv, catalog, check, command, demo, planned, problems, settings};
use crate::call::{
    ExecutionMode, ExitMeaning, Lifetime, PlanSettings, Program, Ready, StopSignal, ToolCall, plan,
};

#[test]
fn a_plan_says_in_short_what_it_runs() {
    let plan = |tool: &str, arguments| planned(&[demo()], tool, arguments).unwrap().in_short();
    assert_eq!(
        plan("demo", json!({ "message": "it's", "verbose": true })),
        r#"demo --fixed 'two words' -m "it's" --verbose"#
    );
    assert_eq!(
        plan("sandboxed_shell", json!({ "command": "  echo a |\n\n  wc\n" })),
        "echo a | wc"
    );
    let long = plan("sandboxed_shell", json!({ "command": "é".repeat(1000) }));
    assert_eq!(long, "é".repeat(120) + "…");
    let sequence = json!({
        "name": "both", "description": "B.", "command": "sequence",
        "sequence": [{ "tool": "demo" }, { "tool": "sandboxed_shell", "args": { "command": "true" } }],
    });
    assert_eq!(
        planned(&[demo(), sequence], "both", json!({}))
            .unwrap()
            .in_short(),
        "demo && sandboxed_shell"
    );
}

#[test]
fn mode_and_timeout_come_from_the_nearest_that_says_so() {
    let tool = json!({
        "name": "t", "description": "T.", "command": "t", "synchronous": true, "timeout_seconds": 10,
        "subcommand": [
            { "name": "plain", "description": "P." },
            { "name": "own", "description": "O.", "force_synchronous": false, "timeout_seconds": 20 },
        ],
    });
    use ExecutionMode::{Asynchronous, Inline, Synchronous};
    let cases = [
        (demo(), "demo", json!({}), Inline, 600),
        (tool.clone(), "t_plain", json!({}), Synchronous, 10),
        (tool.clone(), "t_own", json!({}), Inline, 20),
        (
            tool.clone(),
            "t_own",
            json!({ "execution_mode": "Synchronous", "timeout_seconds": 30 }),
            Synchronous,
            30,
        ),
        (
            tool.clone(),
            "t_plain",
            json!({ "execution_mode": "AsyncResultPush" }),
            Asynchronous,
            10,
        ),
    ];
    for (file, name, arguments, mode, seconds) in cases {
        let plan = planned(&[file], name, arguments).unwrap();
        assert_eq!(
            (plan.mode, plan.timeout),
            (mode, Duration::from_secs(seconds)),
            "{name}"
        );
    }
    let forced = PlanSettings {
        force_sync: true,
        ..settings()
    };
    let call = json!({ "execution_mode": "asynchronous" });
    let call = ToolCall {
        tool: "t_own".into(),
        arguments: call.as_object().unwrap().clone(),
    };
    assert_eq!(plan(&catalog(&[tool]), &forced, call).unwrap().mode, Synchronous);
}

#[test]
fn a_command_carries_what_its_levels_say() {
    let tool = json!({
        "name": "t", "description": "T.", "command": "t", "env": { "A": "1", "B": "1" }, "exit_codes": [1],
        "success_hint": "look at the report",
        "stream": {
            "append_args": ["--stats"], "env": { "B": "2" },
            "rules": [{ "emit": "progress", "match": "(?P<p>[0-9]+)%", "percent": "{p}" }],
        },
        "subcommand": [{
            "name": "sub", "description": "S.", "env": { "C": "3" }, "exit_codes": [2],
            "positional_args": [{ "name": "x", "type": "string" }],
        }],
    });
    let command = command(planned(&[tool], "t_sub", json!({ "x": "y" })).unwrap());
    assert_eq!(argv(&command.program), ["t", "sub", "--stats", "y"]);
    let expected =
        [("A", "1"), ("B", "2"), ("C", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(command.environment, BTreeMap::from(expected));
    let meanings = [0, 1, 2].map(|code| command.exit_codes.meaning(code).cloned());
    assert_eq!(
        meanings,
        [Some(ExitMeaning::Success), None, Some(ExitMeaning::Success)]
    );
    assert_eq!(command.success_hint.as_deref(), Some("look at the report"));
    assert!(command.stream.is_some());
}

#[test]
fn the_shell_tool_takes_a_script() {
    let plan = planned(
        &[],
        "sandboxed_shell",
        json!({ "command": "echo 'a b' | wc", "working_directory": "d" }),
    );
    let plan = plan.unwrap();
    assert_eq!(plan.directory, PathBuf::from("/scope/d"));
    assert_eq!(command(plan).program, Program::Script("echo 'a b' | wc".into()));
    let error = planned(
        &[],
        "sandboxed_shell",
        json!({ "shell": "ls", "command": " ", "cwd": "d", "description": "x" }),
    )
    .unwrap_err();
    let expected = [
        "`command` must not be empty",
        "`cwd` is not an argument of this tool; did you mean `working_directory`?",
        "`description` is not an argument of this tool",
        "`shell` is not an argument of this tool; did you mean `command`?",
    ];
    assert_eq!(problems(error), expected);
}

#[test]
fn variables_input_and_lifetime_steer_every_call() {
    for (tool, more) in [
        ("sandboxed_shell", json!({ "command": "cat" })),
        ("demo", json!({})),
    ] {
        let mut arguments =
            json!({ "env": { "A": "b", "N": 3 }, "stdin": "in\n", "ready": "listening on \\d+" });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let file =
            json!({ "name": "demo", "description": "Demo.", "command": "demo", "stop_signal": "QUIT" });
        let plan = planned(&[file], tool, arguments).unwrap();
        assert!(
            matches!(&plan.lifetime, Lifetime::KeepsRunning { ready: Some(Ready::Line(ready)) } if ready.is_match("listening on 80"))
        );
        assert_eq!(plan.timeout, Duration::MAX);
        let command = command(plan);
        assert_eq!(command.stdin.as_deref(), Some("in\n"));
        assert_eq!(command.environment["A"], "b");
        assert_eq!(command.environment["N"], "3");
        if tool == "demo" {
            assert_eq!(argv(&command.program), ["demo"]);
            assert_eq!(command.stop_signal, StopSignal::Quit);
        }
    }
    let error = planned(
        &[],
        "sandboxed_shell",
        json!({ "command": "x", "env": { "A=B": "c" }, "stdin": 1, "keep_running": 7, "ready": "(" }),
    );
    assert_eq!(problems(error.unwrap_err()).len(), 4);
}

/// Its own argument, not the call's.
#[test]
fn a_tool_may_have_an_argument_called_env() {
    let file = json!({
        "name": "demo", "description": "Demo.", "command": "demo",
        "options": [{ "name": "env", "type": "string", "description": "E." }],
    });
    check(file, "demo", json!({ "env": "x" }), &["demo", "--env", "x"]);
}

#[test]
fn a_file_says_when_what_keeps_running_is_ready() {
    let serve = json!({
        "name": "serve", "description": "D.", "command": "serve", "ready": { "port": "{$port}" },
        "options": [{ "name": "port", "type": "integer", "default": 8000 }],
    });
    let lifetime =
        |given: Value| planned(std::slice::from_ref(&serve), "serve", given).map(|plan| plan.lifetime);
    for (given, port) in [
        (json!({}), 8000),
        (json!({ "port": 81, "keep_running": true }), 81),
    ] {
        let found = lifetime(given).unwrap();
        assert!(
            matches!(found, Lifetime::KeepsRunning { ready: Some(Ready::Port(found)) } if found == port),
            "{found:?}"
        );
    }
    assert!(matches!(
        lifetime(json!({ "keep_running": false })).unwrap(),
        Lifetime::Finite
    ));
    assert!(matches!(
        lifetime(json!({ "ready": "^up$" })).unwrap(),
        Lifetime::KeepsRunning {
            ready: Some(Ready::Line(_))
        }
    ));
    assert!(lifetime(json!({ "port": 70000 })).is_err());
}
