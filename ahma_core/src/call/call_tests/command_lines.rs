//! The command line that a tool file makes of arguments.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{argv, check, check_refused, command, demo, planned};
use crate::call::ArgumentFile;

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
