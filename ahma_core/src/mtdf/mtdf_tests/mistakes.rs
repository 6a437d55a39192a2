//! Mistakes in fields and values.

use serde_json::json;

use super::{messages, problems};
use crate::mtdf::{Problem, check_file};

#[test]
fn mistakes_of_shape_do_not_hide_mistakes_of_meaning() {
    let file = json!({
        "description": "D.", "command": "demo", "enabled": "yes",
        "subcommand": [{ "name": "a_b", "description": "", "options": [{ "name": "x", "type": "text", "default": 5 }] }],
    });
    let checked = check_file("x.json", &file.to_string());
    let mut found = messages(&checked.problems);
    found.sort_unstable();
    let expected = [
        "`description` must not be empty: the model chooses tools by it",
        "`text` is not one of `string`, `boolean`, `integer`, `number`, `array`",
        "expected boolean, found string",
        "the subcommand name `a_b` must not contain an underscore",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_byte_order_mark_is_no_mistake() {
    let text = format!("\u{feff}{}", json!({ "description": "D.", "command": "demo" }));
    assert!(check_file("x.json", &text).tool.is_some());
}

#[test]
fn a_wrong_element_of_a_default_is_pointed_at() {
    let option =
        json!({ "name": "x", "type": "array", "items": { "type": "integer" }, "default": [1, "two"] });
    let file = json!({ "description": "D.", "command": "x", "options": [option] });
    let checked = check_file("x.json", &file.to_string());
    assert_eq!(
        messages(&checked.problems),
        ["`default` element 1 must be an integer, not string"]
    );
    assert_eq!(checked.problems[0].pointer, "/options/0/default/1");
}

#[test]
fn what_only_a_shell_understands_is_warned_of() {
    for (command, sign) in [
        ("ls -l | wc -l", Some("|")),
        ("ls && echo x", Some("&&")),
        ("ls & wait", Some("&")),
        ("ls; wc", Some(";")),
        ("ls > x", Some(">")),
        ("wc < x", Some("<")),
        ("ls *.txt", Some("*")),
        ("ls ~/x", Some("~")),
        ("ls $HOME", Some("$")),
        ("ls ${HOME}", Some("$")),
        ("ls a~ b", None),
        ("sh -c 'ls | wc > $HOME/x; ls ~ *'", None),
        (r#"sh -c "ls | wc""#, None),
        (r"find -exec ls {} \;", None),
        ("cut -d $", None),
        (r#"awk "a\"|b""#, None),
    ] {
        let file = json!({ "name": "t", "description": "D.", "command": command });
        let checked = check_file("t.json", &file.to_string());
        assert!(
            checked.tool.is_some(),
            "a warning keeps no file from loading: {command}"
        );
        let found: Vec<&Problem> = checked.problems.iter().collect();
        match (found.as_slice(), sign) {
            ([], None) => {}
            ([problem], Some(sign)) => {
                assert!(problem.message.contains(&format!("`{sign}`")), "{problem}");
                let hint = problem.hint.as_deref().unwrap();
                assert!(
                    hint.contains("sh -c '") && hint.contains("sandboxed_shell"),
                    "{hint}"
                );
            }
            _ => panic!("{command}: {found:?}"),
        }
    }
}

#[test]
fn a_command_in_a_subcommand_is_explained() {
    let file = json!({
        "description": "D.", "command": "git",
        "subcommand": [{ "name": "add", "description": "A.", "command": "git add" }],
    });
    let checked = check_file("t.json", &file.to_string());
    let hint = checked.problems[0].hint.as_deref().unwrap();
    assert!(hint.contains("no command of its own"), "{hint}");
}

#[test]
fn unknown_fields_are_met_with_what_was_meant() {
    for (field, value, expected) in [
        ("sub_command", json!([]), "did you mean `subcommand`?"),
        ("comand", json!("x"), "did you mean `command`?"),
        ("timeout", json!(5), "did you mean `timeout_seconds`?"),
        ("option", json!([]), "did you mean `options`?"),
        ("async", json!(true), "write `\"synchronous\": false`"),
        ("asynchronous", json!(false), "write `\"synchronous\": true`"),
    ] {
        let file = json!({ "description": "D.", "command": "x", field: value });
        let checked = check_file("x.json", &file.to_string());
        let hints: Vec<Option<&str>> = checked
            .problems
            .iter()
            .map(|problem| problem.hint.as_deref())
            .collect();
        assert_eq!(hints, [Some(expected)], "{field}");
    }
}

/// The result is the same if serde refuses the number, the walk or the check of meaning.
#[test]
fn a_timeout_out_of_range_is_always_met_with_the_same_words() {
    for (seconds, flaw) in [
        (-1, "hints"),
        (0, "hints"),
        (0, "enabled"),
        (604_801, "hints"),
        (604_801, "enabled"),
    ] {
        let file = json!({ "description": "D.", "command": "x", "timeout_seconds": seconds, flaw: "text" });
        let checked = check_file("x.json", &file.to_string());
        let found = checked
            .problems
            .iter()
            .find(|problem| problem.pointer == "/timeout_seconds");
        let expected = format!("must be between 1 and 604800, not {seconds}");
        assert_eq!(found.map(|problem| &problem.message), Some(&expected), "{flaw}");
    }
}

#[test]
fn a_wrong_preset_is_complained_of_once() {
    let file = json!({ "description": "D.", "command": "x", "stream": { "preset": "checkstyle" } });
    let checked = check_file("x.json", &file.to_string());
    assert_eq!(
        messages(&checked.problems),
        ["`checkstyle` is not one of `sarif`, `junit`"]
    );
    let file = json!({ "description": "D.", "command": "x", "stream": {} });
    let checked = check_file("x.json", &file.to_string());
    assert_eq!(
        messages(&checked.problems),
        ["no rules and no `preset`, so nothing would be seen"]
    );
}

#[test]
fn mistakes_in_what_results_mean_are_explained() {
    let file = json!({
        "description": "D.", "command": "x",
        "exit_codes": { "1": "findings", "256": "success", "0": { "failure": "no" } },
        "ready": { "port": "port" },
        "exclusive": [["jsn", "quiet"], ["json"]],
        "options": [
            { "name": "json", "type": "boolean" },
            { "name": "quiet", "type": "boolean" },
            { "name": "text", "type": "integer", "stdin": true, "alias": "t" },
            { "name": "more", "type": "string", "stdin": true },
        ],
        "stream": { "rules": [
            { "emit": "phase", "match": "x", "phase": "at {$jso}" },
            { "emit": "summary", "match": "y", "count": true },
            { "emit": "finding", "match": "z", "collect": "a", "finding": { "title": "{lines}" } },
        ] },
    });
    assert_eq!(
        problems(&file),
        [
            "/exclusive/0/0: no argument is called `jsn` [did you mean `json`?]",
            "/exclusive/1: needs at least two names: one of them only may be given",
            "/exit_codes/0: 0 is always a success",
            "/exit_codes/256: `256` is not an exit code; exit codes are numbers from 0 to 255",
            "/options/2/alias: `alias` has no meaning beside `stdin`: nothing of it is on the command line",
            "/options/2/stdin: `stdin` is for arguments of type string only, without `format`",
            "/options/3/stdin: `stdin` is set already, at `/options/2`",
            "/ready/port: `port` must be a number or name an argument: `{$port}`",
            "/stream/rules/0/phase: `{$jso}` names no argument of the tool [did you mean `{$json}`?]",
            "/stream/rules/1: a summary rule gives a line; its template is `text`",
            "/stream/rules/2/collect: `collect` needs `until`, which ends the block",
        ]
    );
    let file = json!({
        "description": "D.", "command": "x", "ready": { "port": "{$port}" },
        "options": [{ "name": "json", "type": "boolean" }],
        "stream": { "rules": [{ "emit": "phase", "match": "x", "phase": "at {$jso}" }] },
    });
    assert_eq!(
        problems(&file),
        [
            "/ready: `{$port}` names no argument of the tool",
            "/stream/rules/0/phase: `{$jso}` names no argument of the tool [did you mean `{$json}`?]",
        ]
    );
}
