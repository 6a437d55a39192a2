//! The published schema and our own checks agree.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{complete, messages, source};
use crate::mtdf::{ToolSource, check_file, check_set, schema};

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
