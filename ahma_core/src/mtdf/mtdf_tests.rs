//! Checks of tool files that the report of `ahma_validate` does not show.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Leaf, LeafAction, Problem, Slot, ToolSource, check_file, check_set, schema};

fn source(name: &str, file: &Value) -> ToolSource {
    ToolSource {
        name: name.into(),
        text: file.to_string(),
    }
}

fn messages(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.message.as_str()).collect()
}

/// A file that uses every field there is.
fn complete() -> Value {
    json!({
        "$schema": "mtdf.schema.json", "name": "complete", "description": "Everything.", "command": "demo --flag",
        "enabled": true, "timeout_seconds": 5, "synchronous": true, "force_synchronous": true,
        "availability_check": { "command": "demo", "args": ["-v"], "working_directory": ".", "success_exit_codes": [0, 1], "skip_subcommand_args": true },
        "install_instructions": "install it", "env": { "A": "b" }, "path_dirs": [".venv/bin"], "exit_codes": [0, 1],
        "annotations": { "title": "Demo", "readOnly": false, "destructive": true, "idempotent": false, "openWorld": true },
        "end_of_options": true, "value_style": "auto", "success_hint": "well done", "failure_hint": "try again", "ready": "^up$", "stop_signal": "TERM", "level": "extended", "exclusive": [["a", "b"]], "hints": { "any": ["thing"] }, "guidance_key": "k",
        "stream": { "rules": [{ "emit": "progress", "match": "(?P<p>\\d+)%", "percent": "{p}" }] },
        "options": [
            { "name": "a", "type": "string", "description": "A.", "required": false, "alias": "a1", "aliases": ["a2"], "enum": ["x"], "default": "x" },
            { "name": "b", "type": "array", "items": { "type": "integer", "minimum": 1, "maximum": 3, "enum": [1, 2] }, "repeat": false },
            { "name": "c", "type": "string", "file_arg": true, "file_flag": "-F" },
            { "name": "d", "type": "number", "minimum": -0.5, "maximum": 1e3 },
            { "name": "e", "type": "array", "format": "path" },
        ],
        "subcommand": [
            { "name": "run", "description": "R.", "positional_args": [{ "name": "x", "type": "string", "passthrough": "verbatim" }] },
            {
                "name": "both", "description": "B.", "step_delay_ms": 3,
                "sequence": [
                    { "tool": "complete", "subcommand": "run", "args": { "x": "-y" }, "description": "first", "skip_if_file_exists": "f" },
                    { "tool": "complete", "subcommand": "run", "skip_if_file_missing": "g" },
                ],
            },
        ],
    })
}

#[test]
fn a_file_with_every_field_is_good_and_fits_the_schema() {
    // Options of the tool go to leaves only, so the sequence must not see them as its own.
    let report = check_set(&[source("complete.json", &complete())]);
    // Taken, and said to be without effect.
    assert_eq!(
        messages(&report.problems),
        ["`guidance_key` is not used", "`hints` is not used"]
    );
    assert_eq!(report.tools.len(), 1);
    let validator = jsonschema::draft202012::new(schema()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&complete())
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn the_walk_and_a_schema_validator_agree() {
    let validator = jsonschema::draft202012::new(schema()).unwrap();
    let broken = [
        json!([]),
        json!({ "description": "D." }),
        json!({ "description": "D.", "command": "c", "options": [{ "name": "x" }] }),
        json!({ "description": "D.", "command": "c", "availability_check": { "comand": "x" } }),
        json!({ "description": "D.", "command": "c", "availability_check": 5 }),
        json!({ "description": "D.", "command": "c", "stream": { "framing": "line" } }),
        json!({ "description": "D.", "command": "c", "exit_codes": [-1] }),
        json!({ "description": "D.", "command": "c", "exit_codes": { "1": "finding" } }),
        json!({ "tools": [{ "name": "x" }] }),
        json!({ "tools": [] }),
        json!({ "command": "c" }),
        json!({ "command": null, "description": "D." }),
        json!({ "description": "D.", "command": "c", "options": [{ "name": "x", "type": "string", "format": "uri" }] }),
    ];
    for file in broken {
        assert!(!validator.is_valid(&file), "{file}");
        assert!(check_file("x.json", &file.to_string()).tool.is_none(), "{file}");
    }
}

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
        "the sequence has more than 256 steps, with those of inner sequences"
    );
    // 2 + 4 + … + 128 steps and levels fit; the next level does not.
    assert_eq!(report.tools.last().unwrap().leaves[0].name, "s7");
}

/// Changes one place of a document: to another value, to nothing, or under another name.
fn mutate(value: &mut Value, path: &[usize], replacement: &Value) {
    match (value, path) {
        (Value::Object(map), [first, rest @ ..]) if !map.is_empty() => {
            let key = map.keys().nth(first % map.len()).cloned().unwrap();
            if rest.is_empty() {
                match replacement {
                    Value::Null => drop(map.remove(&key)),
                    Value::String(name) if name.len() > 3 => {
                        let moved = map.remove(&key).unwrap();
                        map.insert(name.clone(), moved);
                    }
                    other => drop(map.insert(key, other.clone())),
                }
            } else {
                mutate(map.get_mut(&key).unwrap(), rest, replacement);
            }
        }
        (Value::Array(items), [first, rest @ ..]) if !items.is_empty() => {
            let index = first % items.len();
            mutate(&mut items[index], rest, replacement);
        }
        (value, _) => *value = replacement.clone(),
    }
}

fn any_replacement() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z_]{0,12}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{ "name": "x" }, null, 3])),
        Just(json!({ "name": "sequence", "tool": "complete", "type": "array" })),
    ]
}

proptest! {
    /// Whatever is wrong, it is said at a place that exists, and nothing panics.
    #[test]
    fn mutated_files_are_either_good_or_explained(
        changes in proptest::collection::vec((proptest::collection::vec(0usize..20, 1..6), any_replacement()), 1..4),
        pretty in any::<bool>(),
    ) {
        let mut file = complete();
        for (path, replacement) in &changes {
            mutate(&mut file, path, replacement);
        }
        let text = if pretty { format!("{file:#}") } else { file.to_string() };
        let report = check_set(&[ToolSource { name: "x.json".into(), text: text.clone() }]);
        prop_assert!(report.tools.len() == 1 || !report.problems.is_empty(), "nothing said about {}", text);
        for problem in &report.problems {
            let line = text.lines().nth(problem.line - 1);
            prop_assert!(line.is_some_and(|line| problem.column <= line.chars().count() + 1), "{:?}", problem);
            prop_assert!(!problem.message.contains("made-up"), "{:?} in {}", problem, text);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), cut in 0usize..4000) {
        check_file("x.json", &text);
        let complete = complete().to_string();
        let cut = (0..=cut.min(complete.len())).rev().find(|index| complete.is_char_boundary(*index)).unwrap_or(0);
        check_file("x.json", &complete[..cut]);
        check_file("x.json", &format!("{}{text}{}", &complete[..cut], &complete[cut..]));
    }
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
fn the_schema_knows_what_an_editor_can_check() {
    let validator = jsonschema::draft202012::new(schema()).unwrap();
    let file = |field: &str, value: Value| {
        let mut file = json!({
            "name": "x", "description": "D.", "command": "x",
            "subcommand": [{ "name": "x", "description": "D.", "options": [{ "name": "x", "type": "string" }] }],
        });
        let (parent, field) = field.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[field] = value;
        file
    };
    assert!(validator.is_valid(&file("/name", json!("x"))));
    let option = "/subcommand/0/options/0";
    for (field, value) in [
        ("/name", json!("")),
        ("/name", json!("x".repeat(65))),
        ("/description", json!("")),
        ("/command", json!("")),
        ("/timeout_seconds", json!(0)),
        ("/timeout_seconds", json!(604_801)),
        ("/subcommand/0/name", json!("")),
        ("/subcommand/0/description", json!("")),
        ("/subcommand/0/timeout_seconds", json!(0)),
        (&format!("{option}/name"), json!("")),
        (&format!("{option}/name"), json!("x".repeat(65))),
        (&format!("{option}/alias"), json!("")),
        (&format!("{option}/enum"), json!([])),
        (&format!("{option}/enum"), json!(["a", "a"])),
    ] {
        let file = file(field, value);
        assert!(!validator.is_valid(&file), "{file}");
        assert!(check_file("x.json", &file.to_string()).tool.is_none(), "{file}");
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

fn problems(file: &Value) -> Vec<String> {
    let checked = check_file("x.json", &file.to_string());
    let line = |problem: &Problem| {
        let hint = problem
            .hint
            .as_ref()
            .map_or_else(String::new, |hint| format!(" [{hint}]"));
        format!("{}: {}{hint}", problem.pointer, problem.message)
    };
    checked.problems.iter().map(line).collect()
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
            "/exit_codes/256: `256` is no exit code; they are numbers from 0 to 255",
            "/options/2/alias: `alias` has no meaning beside `stdin`: nothing of it is on the command line",
            "/options/2/stdin: `stdin` is for arguments of type string only, without `format`",
            "/options/3/stdin: `stdin` is set already, at `/options/2`",
            "/ready/port: `port` must be a number or name an argument: `{$port}`",
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
