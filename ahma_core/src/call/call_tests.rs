//! Calls through the whole pure line: tool file, catalogue, plan.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    ArgumentFile, CallError, Command, CommandPlan, ExecutionMode, ExitMeaning, Lifetime, PlanSettings,
    Program, Ready, SkipCondition, StopSignal, ToolCall, Work, plan,
};
use crate::{
    catalog::{Catalog, CatalogSettings},
    mtdf::{ToolSource, check_set},
};

fn settings() -> PlanSettings {
    PlanSettings {
        scope: "/scope".into(),
        scope_aliases: vec!["/link-to-scope".into()],
        also_allowed: vec!["/private/tmp".into()],
        default_timeout: Duration::from_secs(600),
        force_sync: false,
    }
}

fn catalog(files: &[Value]) -> Catalog {
    let sources: Vec<ToolSource> = files
        .iter()
        .enumerate()
        .map(|(index, file)| ToolSource {
            name: format!("{index}.json"),
            text: file.to_string(),
        })
        .collect();
    let report = check_set(&sources);
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    Catalog::build(&report.tools, CatalogSettings::default())
}

fn planned(files: &[Value], tool: &str, arguments: Value) -> Result<CommandPlan, CallError> {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    plan(
        &catalog(files),
        &settings(),
        ToolCall {
            tool: tool.into(),
            arguments,
        },
    )
}

fn command(plan: CommandPlan) -> Command {
    match plan.work {
        Work::Command(command) => command,
        Work::Sequence(sequence) => panic!("not a command: {sequence:?}"),
    }
}

fn argv(program: &Program) -> Vec<&str> {
    match program {
        Program::Argv(argv) => argv.iter().map(String::as_str).collect(),
        other => panic!("not an argv: {other:?}"),
    }
}

fn problems(error: CallError) -> Vec<String> {
    match error {
        CallError::Invalid { problems, .. } => problems.iter().map(ToString::to_string).collect(),
        other => panic!("not about arguments: {other:?}"),
    }
}

#[track_caller]
fn check(file: Value, tool: &str, arguments: Value, expected: &[&str]) {
    let command =
        command(planned(&[file], tool, arguments.clone()).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(argv(&command.program), expected, "{arguments}");
}

#[track_caller]
fn check_refused(file: Value, tool: &str, arguments: Value, expected: &[&str]) {
    let error = planned(&[file], tool, arguments.clone())
        .err()
        .unwrap_or_else(|| panic!("accepted: {arguments}"));
    assert_eq!(problems(error), expected, "{arguments}");
}

/// One tool with every kind of argument.
fn demo() -> Value {
    json!({
        "name": "demo", "description": "A demo.", "command": "demo --fixed 'two words'",
        "options": [
            { "name": "message", "type": "string", "alias": "m" },
            { "name": "verbose", "type": "boolean" },
            { "name": "level", "type": "string", "enum": ["low", "high"] },
            { "name": "count", "type": "integer", "minimum": 1, "maximum": 9 },
            { "name": "ratio", "type": "number" },
            { "name": "tag", "type": "array" },
            { "name": "all", "type": "array", "repeat": false, "items": { "type": "integer" } },
            { "name": "-name", "type": "string" },
            { "name": "config", "type": "string", "format": "path" },
            { "name": "joined", "type": "string", "value_style": "joined" },
            { "name": "separate", "type": "string", "value_style": "separate" },
            { "name": "short", "type": "string", "alias": "s", "value_style": "joined" }
        ],
        "positional_args": [
            { "name": "input", "type": "string", "format": "path" },
            { "name": "rest", "type": "array" }
        ]
    })
}

#[test]
fn arguments_become_elements_in_the_order_of_the_file() {
    let cases: &[(Value, &[&str])] = &[
        (json!({}), &[]),
        (
            json!({ "message": "it's\n$HOME `x`; rm" }),
            &["-m", "it's\n$HOME `x`; rm"],
        ),
        (json!({ "m": "by alias" }), &["-m", "by alias"]),
        (json!({ "message": "-x" }), &["-m-x"]),
        (json!({ "message": "" }), &["-m", ""]),
        (json!({ "verbose": true }), &["--verbose"]),
        (json!({ "verbose": false, "level": null }), &[]),
        (
            json!({ "level": "high", "count": 9, "ratio": -0.5 }),
            &["--level", "high", "--count", "9", "--ratio=-0.5"],
        ),
        (json!({ "count": 3.0 }), &["--count", "3"]),
        (
            json!({ "tag": ["a b", "--", ""] }),
            &["--tag", "a b", "--tag=--", "--tag", ""],
        ),
        (json!({ "tag": [], "all": [] }), &[]),
        (json!({ "all": [1, 2] }), &["--all", "1", "2"]),
        (json!({ "-name": "-x" }), &["-name", "-x"]),
        (
            json!({ "joined": "v", "separate": "-v" }),
            &["--joined=v", "--separate", "-v"],
        ),
        (json!({ "joined": "", "short": "" }), &["--joined=", "-s", ""]),
        (json!({ "short": "v" }), &["-sv"]),
        (
            json!({ "rest": ["b"], "input": "a", "verbose": true }),
            &["--verbose", "a", "b"],
        ),
        (
            json!({ "working_directory": "sub", "timeout_seconds": 5, "execution_mode": "synchronous" }),
            &[],
        ),
    ];
    for (arguments, expected) in cases {
        let expected: Vec<&str> = ["demo", "--fixed", "two words"]
            .iter()
            .chain(*expected)
            .copied()
            .collect();
        check(demo(), "demo", arguments.clone(), &expected);
    }
}

#[test]
fn every_mistake_of_a_call_is_listed() {
    check_refused(
        demo(),
        "demo",
        json!({
            "message": 5, "m": "twice", "verbose": "yes", "level": "medium", "count": 10, "ratio": "x", "tag": ["a", true],
            "mesage": "typo", "zzz": 1, "execution_mode": "later", "timeout_seconds": 0, "working_directory": "/etc",
        }),
        &[
            "`execution_mode` must be `synchronous` or `asynchronous`, not \"later\"",
            "`timeout_seconds` must be a number of seconds from 1 to 604800 (a week), not 0",
            "`working_directory` `/etc` is outside the sandbox scope `/scope`",
            "`message` is given twice, also as `m`",
            "`verbose` must be a boolean, not string",
            "`level` must be one of `low`, `high`, not `medium`",
            "`count` must be at most 9, not 10",
            "`ratio` must be a number, not string",
            "`tag` element 1 must be a string, not boolean",
            "`mesage` is not an argument of this tool; did you mean `message`?",
            "`zzz` is not an argument of this tool",
        ],
    );
}

/// Wrong values are reported together with wrong names and types.
#[test]
fn mistakes_of_every_kind_are_listed_at_once() {
    check_refused(
        demo(),
        "demo",
        json!({
            "zzz": 1, "count": "x", "config": "/etc/passwd", "input": "-rf", "all": [1, -2],
            "working_directory": "/etc",
        }),
        &[
            "`working_directory` `/etc` is outside the sandbox scope `/scope`",
            "`count` must be an integer, not string",
            "`zzz` is not an argument of this tool",
            "`all` must not have elements that begin with a dash, such as `-2`",
            "`config` `/etc/passwd` is outside the sandbox scope `/scope`",
            "`input` must not begin with a dash, because it could be taken for an option: `-rf`",
        ],
    );
    // One that is wrong is not missing as well.
    check_refused(
        demo(),
        "demo",
        json!({ "input": {}, "rest": ["x"] }),
        &["`input` must be a string, not object"],
    );
}

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
fn what_is_required_must_be_there() {
    let tool = json!({
        "name": "t", "description": "T.", "command": "t",
        "options": [{ "name": "text", "type": "string", "alias": "x", "required": true }],
        "positional_args": [{ "name": "files", "type": "array", "required": true }],
    });
    let missing = ["`text` is required", "`files` is required"];
    check_refused(tool.clone(), "t", json!({}), &missing);
    check_refused(
        tool.clone(),
        "t",
        json!({ "text": null, "files": null }),
        &missing,
    );
    check_refused(
        tool.clone(),
        "t",
        json!({ "x": "", "files": [] }),
        &["`files` must not be empty"],
    );
    check(tool, "t", json!({ "x": "", "files": [""] }), &["t", "-x", "", ""]);
}

#[test]
fn values_that_no_program_could_receive_are_refused() {
    check_refused(
        demo(),
        "demo",
        json!({ "message": "a\0b" }),
        &["`message` must not contain a NUL character"],
    );
    let huge = "x".repeat(200_000);
    check_refused(
        demo(),
        "demo",
        json!({ "message": huge }),
        &[
            "`message` is 200000 bytes long; a command line takes 131071 at most: write it to a file with `file_write` \
             and give the program the file's path",
        ],
    );
}

#[test]
fn a_positional_cannot_pass_for_an_option() {
    let tool = |end_of_options: bool| {
        json!({
            "name": "cat", "description": "Prints.", "command": "cat", "end_of_options": end_of_options,
            "positional_args": [{ "name": "first", "type": "string" }, { "name": "more", "type": "array" }],
        })
    };
    check(
        tool(true),
        "cat",
        json!({ "first": "a", "more": ["b"] }),
        &["cat", "a", "b"],
    );
    check(
        tool(true),
        "cat",
        json!({ "first": "-a", "more": ["-b"] }),
        &["cat", "--", "-a", "-b"],
    );
    check(
        tool(true),
        "cat",
        json!({ "first": "a", "more": ["-b"] }),
        &["cat", "a", "--", "-b"],
    );
    check_refused(
        tool(false),
        "cat",
        json!({ "first": "-a", "more": ["b", "--c"] }),
        &[
            "`first` must not begin with a dash, because it could be taken for an option: `-a`",
            "`more` must not begin with a dash, because it could be taken for an option: `--c`",
        ],
    );
    check_refused(
        tool(true),
        "cat",
        json!({ "more": ["b"] }),
        &["`more` comes after `first`, so `first` must be given as well"],
    );
}

#[test]
fn arguments_for_another_program_pass_untouched() {
    let tool = |passthrough: &str| {
        json!({
            "name": "run", "description": "Runs.", "command": "run",
            "positional_args": [
                { "name": "target", "type": "string" },
                { "name": "args", "type": "array", "passthrough": passthrough }
            ],
        })
    };
    check(
        tool("verbatim"),
        "run",
        json!({ "target": "t", "args": ["-x", "--", "y"] }),
        &["run", "t", "-x", "--", "y"],
    );
    check(
        tool("after_separator"),
        "run",
        json!({ "args": ["-x"] }),
        &["run", "--", "-x"],
    );
    check(
        tool("after_separator"),
        "run",
        json!({ "target": "t", "args": [] }),
        &["run", "t"],
    );
}

#[test]
fn paths_are_judged_against_the_scope() {
    let inside = [
        "a",
        "../scope/a",
        "/scope/a/../b",
        "/private/tmp/x",
        "/dev/null",
        "/link-to-scope/a",
        ".",
    ];
    for path in inside {
        check(
            demo(),
            "demo",
            json!({ "config": path }),
            &["demo", "--fixed", "two words", "--config", path],
        );
    }
    let outside = [
        (
            "/etc/passwd",
            "`config` `/etc/passwd` is outside the sandbox scope `/scope`",
        ),
        (
            "/scope-too/x",
            "`config` `/scope-too/x` is outside the sandbox scope `/scope`",
        ),
        (
            "../x",
            "`config` `../x` leads to `/x`, outside the sandbox scope `/scope`",
        ),
        (
            "a/../../../../x",
            "`config` `a/../../../../x` leads to `/x`, outside the sandbox scope `/scope`",
        ),
        ("", "`config` must name a file"),
    ];
    for (path, expected) in outside {
        check_refused(demo(), "demo", json!({ "config": path }), &[expected]);
    }
    check_refused(
        demo(),
        "demo",
        json!({ "config": "../../x", "working_directory": "deep" }),
        &["`config` `../../x` leads to `/x`, outside the sandbox scope `/scope`"],
    );
}

#[test]
fn the_working_directory_is_judged_as_paths_are() {
    let cases = [
        (json!({}), "/scope"),
        (json!({ "working_directory": "" }), "/scope"),
        (json!({ "working_directory": "a/./b/.." }), "/scope/a"),
        (json!({ "working_directory": "/scope/a" }), "/scope/a"),
        (
            json!({ "working_directory": "/link-to-scope/a" }),
            "/link-to-scope/a",
        ),
        // As for paths in arguments.
        (json!({ "working_directory": "/private/tmp/x" }), "/private/tmp/x"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            planned(&[demo()], "demo", arguments).unwrap().directory,
            PathBuf::from(expected)
        );
    }
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
fn options_of_a_parent_stand_before_the_subcommand() {
    let tool = json!({
        "name": "compose", "description": "C.", "command": "docker compose",
        "options": [{ "name": "file", "type": "array", "format": "path" }],
        "subcommand": [
            { "name": "up", "description": "U.", "options": [{ "name": "detach", "type": "boolean", "default": true }] },
            { "name": "default", "description": "D." },
        ],
    });
    let arguments = json!({ "file": ["a.yml", "b.yml"] });
    let up = [
        "docker", "compose", "--file", "a.yml", "--file", "b.yml", "up", "--detach",
    ];
    check(tool.clone(), "compose_up", arguments.clone(), &up);
    check(
        tool.clone(),
        "compose_up",
        json!({ "detach": false }),
        &["docker", "compose", "up"],
    );
    check(
        tool,
        "compose",
        arguments,
        &["docker", "compose", "--file", "a.yml", "--file", "b.yml"],
    );
}

#[test]
fn a_file_argument_leaves_a_gap_for_the_path() {
    let tool = json!({
        "name": "commit", "description": "C.", "command": "git commit",
        "options": [{ "name": "message", "type": "string", "alias": "m", "file_arg": true, "file_flag": "-F" }],
        "positional_args": [{ "name": "what", "type": "string" }],
    });
    let huge = "x".repeat(200_000);
    let command = command(planned(&[tool], "commit", json!({ "message": huge, "what": "a" })).unwrap());
    assert_eq!(argv(&command.program), ["git", "commit", "-F", "", "a"]);
    assert_eq!(
        command.files,
        [ArgumentFile {
            index: 3,
            contents: huge
        }]
    );
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
fn a_sequence_is_planned_as_a_whole() {
    let inner = json!({
        "name": "inner", "description": "I.", "command": "sequence", "step_delay_ms": 500,
        "sequence": [{ "tool": "sandboxed_shell", "args": { "command": "date" } }],
    });
    let outer = json!({
        "name": "outer", "description": "O.", "command": "sequence", "step_delay_ms": 100, "timeout_seconds": 9,
        "sequence": [
            { "tool": "demo", "args": { "verbose": true }, "description": "first", "skip_if_file_exists": "done" },
            { "tool": "inner" },
            { "tool": "demo", "subcommand": "default", "skip_if_file_missing": "/scope/x" },
        ],
    });
    let files = [demo(), inner, outer];
    let plan = planned(&files, "outer", json!({ "working_directory": "w" })).unwrap();
    assert_eq!(plan.timeout, Duration::from_secs(9));
    let Work::Sequence(sequence) = plan.work else {
        panic!("not a sequence")
    };
    assert_eq!(
        sequence.delay,
        Duration::from_millis(500),
        "the longest delay wins"
    );
    let labels: Vec<&str> = sequence.steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["demo", "sandboxed_shell", "demo"]);
    assert_eq!(
        argv(&sequence.steps[0].command.program),
        ["demo", "--fixed", "two words", "--verbose"]
    );
    assert_eq!(
        sequence.steps[0].skip,
        Some(SkipCondition::FileExists("/scope/w/done".into()))
    );
    assert_eq!(sequence.steps[1].command.program, Program::Script("date".into()));
    assert_eq!(
        sequence.steps[2].skip,
        Some(SkipCondition::FileMissing("/scope/x".into()))
    );

    let error = planned(&files, "outer", json!({ "verbose": true })).unwrap_err();
    assert_eq!(problems(error), ["`verbose` is not an argument of a sequence"]);
}

#[test]
fn a_sequence_needs_all_its_tools() {
    let sequence = json!({
        "name": "s", "description": "S.", "command": "sequence", "sequence": [{ "tool": "demo" }],
    });
    let without = catalog(&[demo(), sequence]).filtered(|tool| tool.name != "demo");
    let call = ToolCall {
        tool: "s".into(),
        ..ToolCall::default()
    };
    let error = plan(&without, &settings(), call).unwrap_err();
    assert_eq!(
        error,
        CallError::MissingStep {
            tool: "s".into(),
            step: "demo".into()
        }
    );
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let error = planned(&[demo()], "deno", json!({})).unwrap_err();
    assert_eq!(
        error,
        CallError::UnknownTool {
            name: "deno".into(),
            nearest: vec!["demo".into()]
        }
    );
    assert_eq!(
        error.to_string(),
        "no tool is called `deno`; did you mean `demo`?"
    );
    let error = planned(&[demo()], "shell", json!({})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no tool is called `shell`; did you mean `sandboxed_shell`?"
    );
}

/// The names and forms that agents use although the schema has others.
#[test]
fn what_can_only_mean_one_thing_is_taken() {
    let tool = json!({
        "name": "t", "description": "T.", "command": "t",
        "options": [
            { "name": "all-features", "type": "boolean" },
            { "name": "no-run", "type": "boolean" },
            { "name": "tests", "type": "array" },
            { "name": "max_count", "type": "integer", "alias": "n", "aliases": ["limit"] },
            { "name": "message", "type": "string", "aliases": ["msg"] },
            { "name": "ratio", "type": "number" },
            { "name": "i", "type": "boolean", "alias": "i2" },
            { "name": "working-directory", "type": "string" },
        ],
    });
    for (arguments, expected) in [
        (
            json!({ "all_features": true, "no_run": true }),
            &["--all-features", "--no-run"][..],
        ),
        (
            json!({ "allFeatures": "true", "--no-run": "False" }),
            &["--all-features"],
        ),
        (json!({ "tests": "x" }), &["--tests", "x"]),
        (json!({ "max-count": "3" }), &["-n", "3"]),
        (json!({ "limit": 3, "msg": 5 }), &["-n", "3", "--message", "5"]),
        (
            json!({ "message": true, "ratio": "0.5" }),
            &["--message", "true", "--ratio", "0.5"],
        ),
        (
            json!({ "workingDirectory": ".", "timeout-seconds": "5", "executionMode": "synchronous" }),
            &[],
        ),
        (json!({ "working-directory": "x" }), &["--working-directory", "x"]),
    ] {
        let expected: Vec<&str> = std::iter::once("t").chain(expected.iter().copied()).collect();
        check(tool.clone(), "t", arguments, &expected);
    }
    for (arguments, expected) in [
        (
            json!({ "all_features": true, "all-features": true }),
            "`all-features` is given twice, also as `all_features`",
        ),
        (
            json!({ "limit": 1, "n": 2 }),
            "`max_count` is given twice, also as `limit`",
        ),
        (
            json!({ "working_directory": ".", "workingDirectory": "." }),
            "`working_directory` is given twice, in two spellings",
        ),
        (
            json!({ "I": true }),
            "`I` is not an argument of this tool; did you mean `i`?",
        ),
        (
            json!({ "all_features": "yes" }),
            "`all-features` must be a boolean, not string",
        ),
    ] {
        check_refused(tool.clone(), "t", arguments, &[expected]);
    }
}

#[test]
fn the_shell_takes_its_script_under_other_names() {
    for arguments in [
        json!({ "cmd": "ls" }),
        json!({ "script": "ls" }),
        json!({ "command": ["ls"] }),
    ] {
        let plan = planned(&[], "sandboxed_shell", arguments).unwrap();
        assert_eq!(command(plan).program, Program::Script("ls".into()));
    }
}

#[test]
fn tools_known_from_elsewhere_are_answered_with_those_that_do_the_same() {
    let catalog = Catalog::build(
        &[],
        CatalogSettings {
            files: true,
            ..CatalogSettings::default()
        },
    );
    for (name, expected) in [
        ("bash", "sandboxed_shell"),
        ("Bash", "sandboxed_shell"),
        ("shell", "sandboxed_shell"),
        ("run", "sandboxed_shell"),
        ("exec", "sandboxed_shell"),
        ("execute_command", "sandboxed_shell"),
        ("terminal", "sandboxed_shell"),
        ("run_command", "sandboxed_shell"),
        ("read_file", "file_read"),
        ("view", "file_read"),
        ("cat", "file_read"),
        ("str_replace", "file_edit"),
        ("edit_file", "file_edit"),
        ("write_file", "file_write"),
        ("apply_patch", "file_patch"),
        ("wait", "await"),
        ("KillShell", "cancel"),
    ] {
        assert_eq!(catalog.nearest(name).first(), Some(&expected), "{name}");
    }
    let without_files = Catalog::build(&[], CatalogSettings::default());
    assert_eq!(without_files.nearest("read_file"), ["sandboxed_shell"]);
}

/// Any text that a kernel could pass, with a liking for what shells and option parsers treat specially.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[^\\x00]*", "[-=;&|$`'\"\\\\ \n*~{}]{0,8}", "--?[a-z=]{0,6}"]
}

proptest! {
    #[test]
    fn any_text_is_exactly_one_element(text in any_text(), other in any_text()) {
        let tool = json!({
            "name": "t", "description": "T.", "command": "t", "end_of_options": true,
            "options": [
                { "name": "separate", "type": "string", "value_style": "separate" },
                { "name": "joined", "type": "string", "value_style": "joined" },
                { "name": "auto", "type": "array" },
            ],
            "positional_args": [
                { "name": "first", "type": "string" },
                { "name": "rest", "type": "array" },
            ],
        });
        let arguments = json!({
            "separate": text, "joined": text, "auto": [text, other], "first": text, "rest": [other, text],
        });
        let command = command(planned(&[tool], "t", arguments).unwrap());
        let auto = |value: &str| match value.starts_with('-') {
            true => vec![format!("--auto={value}")],
            false => vec!["--auto".to_owned(), value.to_owned()],
        };
        let mut expected = vec!["t".to_owned(), "--separate".into(), text.clone(), format!("--joined={text}")];
        expected.extend(auto(&text));
        expected.extend(auto(&other));
        // One guard, before the first argument that needs it.
        let guard = |needed: bool| needed.then(|| "--".to_owned());
        expected.extend(guard(text.starts_with('-')));
        expected.push(text.clone());
        expected.extend(guard(other.starts_with('-') && !text.starts_with('-')));
        expected.extend([other, text]);
        prop_assert_eq!(argv(&command.program), expected);
    }

    #[test]
    fn arbitrary_arguments_never_panic(arguments in proptest::collection::btree_map("[a-z_-]{0,9}|count|tag|config|m", any_json(), 0..6)) {
        let arguments: serde_json::Map<String, Value> = arguments.into_iter().collect();
        let _ = planned(&[demo()], "demo", Value::Object(arguments));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
        proptest::collection::vec(any_text(), 0..3).prop_map(Value::from),
    ]
}

#[test]
fn a_file_says_what_goes_to_standard_input_and_what_does_not_go_together() {
    let sql = json!({
        "name": "sql", "description": "D.", "command": "sql", "exclusive": [["json", "csv"]],
        "options": [
            { "name": "json", "type": "boolean" },
            { "name": "csv", "type": "boolean" },
            { "name": "query", "type": "string", "stdin": true, "required": true },
        ],
    });
    let given = json!({ "json": true, "csv": false, "query": "-- x\nselect 1" });
    let command = command(planned(std::slice::from_ref(&sql), "sql", given).unwrap());
    assert_eq!(argv(&command.program), ["sql", "--json"]);
    assert_eq!(command.stdin.as_deref(), Some("-- x\nselect 1"));
    let given = json!({ "json": true, "csv": true, "query": "" });
    check_refused(
        sql,
        "sql",
        given,
        &["`csv` does not go with `json`; give one of them"],
    );
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
