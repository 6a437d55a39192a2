//! Names of tools, and several tools in one file.

use std::time::Duration;

use serde_json::json;

use super::{messages, problems, source};
use crate::mtdf::{Leaf, LeafAction, Slot, check_file, check_set};

#[test]
fn a_name_that_is_taken_is_a_problem_of_both_files() {
    let one = json!({ "name": "same", "description": "D.", "command": "one" });
    let other = json!({ "description": "D.", "command": "same" });
    let third = json!({ "name": "third", "description": "D.", "command": "third" });
    let report = check_set(&[
        source("1.json", &one),
        source("2.json", &other),
        source("3.json", &third),
    ]);
    let found: Vec<(&str, &str, &str)> = report
        .problems
        .iter()
        .map(|problem| {
            (
                problem.file.as_str(),
                problem.pointer.as_str(),
                problem.message.as_str(),
            )
        })
        .collect();
    let expected = [
        ("1.json", "/name", "the tool `same` is also defined in `2.json`"),
        (
            "2.json",
            "/command",
            "the tool `same` is also defined in `1.json`",
        ),
    ];
    assert_eq!(found, expected);
    assert_eq!(
        report
            .tools
            .iter()
            .map(|tool| tool.leaves[0].name.as_str())
            .collect::<Vec<_>>(),
        ["third"]
    );
}

#[test]
fn a_name_of_dashes_is_not_called_empty() {
    for (name, expected) in [
        ("", "`name` must not be empty"),
        ("-", "`name` cannot be `-`: it needs a letter or a digit"),
        ("--", "`name` cannot be `--`: it needs a letter or a digit"),
    ] {
        let file =
            json!({ "description": "D.", "command": "x", "options": [{ "name": name, "type": "string" }] });
        let checked = check_file("x.json", &file.to_string());
        assert_eq!(messages(&checked.problems), [expected]);
    }
}

#[test]
fn several_tools_share_the_head_of_their_file() {
    let file = json!({
        "command": "scan --quiet", "level": "extended", "timeout_seconds": 9, "env": { "A": "1" },
        "options": [{ "name": "verbose", "type": "boolean" }],
        "tools": [
            { "name": "fast", "description": "F.", "options": [{ "name": "port", "type": "integer" }] },
            { "name": "other", "description": "O.", "command": "other run", "level": "core",
              "subcommand": [{ "name": "default", "description": "D." }, { "name": "deep", "description": "D." }] },
        ],
    });
    let checked = check_file("x.json", &file.to_string());
    assert_eq!(checked.problems, []);
    let leaves = checked.tool.unwrap().leaves;
    let line = |leaf: &Leaf| {
        let LeafAction::Command(template) = &leaf.action else {
            panic!()
        };
        let slots = template.slots.iter().map(|slot| match slot {
            Slot::Word(word) => word.clone(),
            Slot::Parameter(parameter) => format!("[{}]", parameter.name),
            Slot::StreamArguments => String::new(),
        });
        assert_eq!(template.environment["A"], "1");
        assert_eq!(leaf.timeout, Some(Duration::from_secs(9)));
        let words = slots.filter(|word| !word.is_empty()).collect::<Vec<_>>();
        format!("{} {:?}: {}", leaf.name, leaf.level, words.join(" "))
    };
    let lines: Vec<String> = leaves.iter().map(|leaf| line(leaf)).collect();
    assert_eq!(
        lines,
        [
            "fast Extended: scan --quiet [verbose] [port]",
            "other Core: other run [verbose]",
            "other_deep Core: other run [verbose] deep",
        ]
    );
}

#[test]
fn mistakes_in_a_file_of_several_tools_are_at_their_places() {
    let file = json!({
        "name": "x", "positional_args": [],
        "availability_check": { "args": ["--version"] },
        "tools": [
            { "description": "A." },
            { "name": "b", "command": "b", "descripton": "B." },
            { "name": "b", "command": "b", "description": "B.", "timeout_seconds": 0 },
        ],
    });
    assert_eq!(
        problems(&file),
        [
            "/availability_check: the check needs a `command`, because the file has none for all its tools",
            "/name: `name` does not go with `tools` [give it to one of the tools]",
            "/tools/0: the field `command` is missing [give one to the tool, or to the file for all its tools]",
            "/tools/1: the field `description` is missing",
            "/tools/1/descripton: unknown field `descripton` [did you mean `description`?]",
            "/tools/2/name: the tool `b` is defined twice; the other one is at `/tools/1`",
            "/tools/2/timeout_seconds: must be between 1 and 604800, not 0",
        ]
    );
}
