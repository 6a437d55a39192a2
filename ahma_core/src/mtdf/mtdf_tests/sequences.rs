//! Mistakes in sequences.

use serde_json::{Value, json};

use super::source;
use crate::mtdf::{Problem, ToolSource, check_set};

#[test]
fn a_sequence_falls_with_the_tool_that_it_needs() {
    let broken = json!({ "name": "broken", "description": "D.", "command": "x", "timeout_seconds": 0 });
    let inner = json!({ "name": "inner", "description": "D.", "command": "sequence", "sequence": [{ "tool": "broken" }] });
    let outer = json!({ "name": "outer", "description": "D.", "command": "sequence", "sequence": [{ "tool": "inner" }] });
    let report = check_set(&[
        source("b.json", &broken),
        source("i.json", &inner),
        source("o.json", &outer),
    ]);
    assert!(report.tools.is_empty());
    let files: Vec<&str> = report
        .problems
        .iter()
        .map(|problem| problem.file.as_str())
        .collect();
    assert_eq!(files, ["b.json", "i.json", "o.json"]);
}

/// The problem of one step next to a few tools: the marked text, pointer, message, and hint.
fn wrong_step(step: &Value) -> Vec<(String, String, String, String)> {
    let pyx = json!({
        "name": "pyx", "description": "D.", "command": "x",
        "subcommand": [
            { "name": "lvl1", "description": "D.", "subcommand": [{ "name": "deep", "description": "D." }] },
            { "name": "off", "description": "D.", "enabled": false },
            { "name": "tag", "description": "D.", "options": [{ "name": "count", "type": "integer" }] },
        ],
    });
    let plain = json!({ "name": "plain", "description": "D.", "command": "x" });
    let sequence = json!({ "name": "seq", "description": "D.", "command": "sequence", "sequence": [step] });
    let report = check_set(&[
        source("p.json", &pyx),
        source("q.json", &plain),
        source("s.json", &sequence),
    ]);
    let text = sequence.to_string();
    let marked = |problem: &Problem| {
        text.chars()
            .skip(problem.column - 1)
            .take(problem.length)
            .collect()
    };
    (report.problems.into_iter())
        .map(|problem| {
            (
                marked(&problem),
                problem.pointer,
                problem.message,
                problem.hint.unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn what_is_wrong_with_a_step_is_said_where_it_is_wrong() {
    for (step, marked, pointer, message, hint) in [
        (
            json!({ "tool": "pyx", "subcommand": "lvl1_dep" }),
            r#""lvl1_dep""#,
            "/sequence/0/subcommand",
            "the tool `pyx` has no subcommand `lvl1_dep`",
            "did you mean `lvl1_deep`?",
        ),
        (
            json!({ "tool": "pyx", "subcommand": "zzz" }),
            r#""zzz""#,
            "/sequence/0/subcommand",
            "the tool `pyx` has no subcommand `zzz`",
            "it has `lvl1_deep`, `tag`",
        ),
        (
            json!({ "tool": "pyx", "subcommand": "off" }),
            r#""off""#,
            "/sequence/0/subcommand",
            "the tool `pyx_off` is disabled",
            "enable it, or take out the step",
        ),
        (
            json!({ "tool": "plain", "subcommand": "zzz" }),
            r#""zzz""#,
            "/sequence/0/subcommand",
            "the tool `plain` has no subcommands",
            "leave `subcommand` out",
        ),
        (
            json!({ "tool": "pyx" }),
            r#""pyx""#,
            "/sequence/0/tool",
            "the tool `pyx` is called by its subcommands",
            "name one in `subcommand`: `lvl1_deep`, `tag`",
        ),
        (
            json!({ "tool": "pxy", "subcommand": "lvl1_deep" }),
            r#""pxy""#,
            "/sequence/0/tool",
            "no tool is called `pxy`",
            "did you mean `pyx`?",
        ),
        (
            json!({ "tool": "pyx", "subcommand": "tag", "args": { "cuont": 1 } }),
            r#""cuont""#,
            "/sequence/0/args/cuont",
            "`cuont` is not an argument of this tool; did you mean `count`?",
            "it takes `count`",
        ),
        (
            json!({ "tool": "pyx", "subcommand": "tag", "args": { "count": "one" } }),
            r#""one""#,
            "/sequence/0/args/count",
            "`count` must be an integer, not string",
            "",
        ),
        (
            json!({ "tool": "sandboxed_shell", "args": { "command": "ls", "cwd": "x" } }),
            r#""cwd""#,
            "/sequence/0/args/cwd",
            "`cwd` is not an argument of this tool",
            "it takes `command`",
        ),
    ] {
        let expected = [marked, pointer, message, hint].map(str::to_owned);
        let [a, b, c, d] = expected;
        assert_eq!(wrong_step(&step), [(a, b, c, d)], "{step}");
    }
}

#[test]
fn other_mistakes_of_a_file_do_not_hide_those_of_its_steps() {
    let tool = json!({ "name": "tool", "description": "D.", "command": "x" });
    let steps = json!([
        { "tool": "nowhere" },
        { "tool": "tool", "args": { "x": 1, "working_directory": "." } },
        { "tool": "seq", "subcommand": "all" },
        { "tool": "seq", "subcommand": "one", "args": { "y": 1 } },
        { "tool": "tool", "arg": { "x": 1 } },
    ]);
    let file = |flaw: &str| {
        let one = json!({ "name": "one", "description": "D.", "options": [{ "name": "y", "type": "string", "default": 5 }] });
        let all = json!({ "name": "all", "description": "D.", "sequence": steps, flaw: true });
        json!({ "name": "seq", "description": "D.", "command": "x", "subcommand": [one, all] })
    };
    let steps_of = |file: &Value| -> Vec<(String, String)> {
        let report = check_set(&[source("s.json", file), source("t.json", &tool)]);
        let places: Vec<usize> = report.problems.iter().map(|problem| problem.column).collect();
        assert!(places.is_sorted(), "{:?}", report.problems);
        let of_steps = report
            .problems
            .into_iter()
            .filter(|problem| problem.pointer.contains("/sequence/"));
        of_steps
            .map(|problem| {
                (
                    problem.pointer.replace("/subcommand/1/sequence/", ""),
                    problem.message,
                )
            })
            .collect()
    };
    // Of shape, in a step and elsewhere, and of meaning.
    let expected = [
        ("0/tool", "no tool is called `nowhere`"),
        (
            "1/args/working_directory",
            "a step cannot set `working_directory`",
        ),
        (
            "1/args/x",
            "`x` is not an argument of this tool, which takes none",
        ),
        ("2/tool", "the sequence calls itself: `seq_all` → `seq_all`"),
        ("4/arg", "unknown field `arg`"),
    ];
    let expected = expected.map(|(pointer, message)| (pointer.to_owned(), message.to_owned()));
    assert_eq!(steps_of(&file("snychronous")), expected);

    let mut of_meaning = file("synchronous");
    of_meaning
        .pointer_mut("/subcommand/1/sequence")
        .unwrap()
        .as_array_mut()
        .unwrap()
        .pop();
    assert_eq!(steps_of(&of_meaning), expected[..4]);
}

#[test]
fn a_sequence_that_multiplies_is_refused() {
    let mut files = vec![json!({ "name": "s0", "description": "D.", "command": "x" })];
    for level in 1..20 {
        let step = json!({ "tool": format!("s{}", level - 1) });
        let name = format!("s{level}");
        files.push(
            json!({ "name": name, "description": "D.", "command": "sequence", "sequence": [step, step] }),
        );
    }
    let sources: Vec<ToolSource> = files
        .iter()
        .map(|file| source(file["name"].as_str().unwrap(), file))
        .collect();
    let report = check_set(&sources);
    let first = report.problems.first().unwrap();
    assert_eq!(
        first.message,
        "the sequence has more than 256 steps, counting those of inner sequences"
    );
    // 2 + 4 + … + 128 steps and levels fit; the next level does not.
    assert_eq!(report.tools.last().unwrap().leaves[0].name, "s7");
}
