use serde_json::json;

use super::*;
use crate::{
    catalog::{Catalog, CatalogSettings},
    mtdf::check_file,
};

fn read_words(words: &[&str]) -> (Value, Vec<String>) {
    let file = json!({
        "name": "demo",
        "description": "A demonstration.",
        "command": "demo",
        "options": [
            {"name": "release", "type": "boolean", "description": "A switch."},
            {"name": "max_count", "type": "integer", "alias": "n", "description": "A count."},
            {"name": "ratio", "type": "number", "description": "A ratio."},
            {"name": "define", "type": "array", "items": {"type": "string"}, "description": "A list."}
        ],
        "positional_args": [
            {"name": "source", "type": "string", "description": "One."},
            {"name": "others", "type": "array", "items": {"type": "string"}, "description": "More."}
        ]
    });
    let checked = check_file("demo.json", &file.to_string());
    let tool = checked.tool.unwrap_or_else(|| panic!("{:?}", checked.problems));
    read_for("demo", &[tool], words)
}

fn read_for(name: &str, tools: &[crate::mtdf::ToolDef], words: &[&str]) -> (Value, Vec<String>) {
    let catalog = Catalog::build(tools, CatalogSettings::default());
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let (arguments, problems) = read(catalog.get(name).expect("it was built"), &words);
    (
        arguments.into(),
        problems.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn words_become_typed_arguments() {
    for (words, expected) in [
        (&["--release"][..], json!({"release": true})),
        (&["--release=false"], json!({"release": false})),
        (&["--max-count", "3"], json!({"max_count": 3})),
        (&["--n=3"], json!({"max_count": 3})),
        (&["-n", "3", "one"], json!({"max_count": 3, "source": "one"})),
        (&["--max_count", "-3"], json!({"max_count": -3})),
        (&["--max-count", "many"], json!({"max_count": "many"})),
        (&["--ratio", "0.5"], json!({"ratio": 0.5})),
        (
            &["--define", "a", "--define=--b", "--release"],
            json!({"define": ["a", "--b"], "release": true}),
        ),
        (
            &["one", "--release", "two", "three"],
            json!({"release": true, "source": "one", "others": ["two", "three"]}),
        ),
        (
            &["--source", "x", "--", "--y", "-z"],
            json!({"source": "x", "others": ["--y", "-z"]}),
        ),
        (&["--unknown", "x"], json!({"unknown": "x"})),
        (
            &["--unknown", "--release"],
            json!({"unknown": true, "release": true}),
        ),
        (&["--timeout-seconds", "0.5"], json!({"timeout_seconds": 0.5})),
        (&["--timeout-seconds", "2"], json!({"timeout_seconds": 2})),
    ] {
        assert_eq!(read_words(words), (expected, Vec::new()), "{words:?}");
    }
}

#[test]
fn every_problem_is_named() {
    for (words, expected) in [
        (
            &["--max-count", "--ratio"][..],
            &["`max_count` needs a value", "`ratio` needs a value"][..],
        ),
        (&["--max-count", "1", "--n", "2"], &["`max_count` is given twice"]),
        (&["-x"], &["`-x` is not understood"]),
        (
            &["--execution-mode", "synchronous"],
            &["`execution_mode` has no meaning here"],
        ),
    ] {
        let (_, problems) = read_words(words);
        assert_eq!(problems.len(), expected.len(), "{words:?}: {problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.starts_with(expected), "{words:?}: {problem}");
        }
    }
}

#[test]
fn a_script_is_one_word_and_the_advice_shows_how() {
    for (words, expected) in [
        (&["ls -la"][..], None),
        (&["-la"], None),
        (&["ls", "-la"], Some("ahma_mcp run sandboxed_shell 'ls -la'")),
        (
            &["ls", "--all", "x y"],
            Some("ahma_mcp run sandboxed_shell 'ls --all x y'"),
        ),
        (
            &["--", "ls", "-la"],
            Some("ahma_mcp run sandboxed_shell 'ls -la'"),
        ),
        (&["--timeout-seconds", "3", "ls"], None),
    ] {
        let (_, problems) = read_for(crate::mtdf::SHELL_TOOL, &[], words);
        match expected {
            None => assert!(problems.is_empty(), "{words:?}: {problems:?}"),
            Some(expected) => {
                assert_eq!(problems.len(), 1, "{words:?}: {problems:?}");
                assert!(problems[0].ends_with(expected), "{problems:?}");
            }
        }
    }
}

#[test]
fn two_dashes_are_advised_only_where_they_help() {
    for (passthrough, helps) in [(json!(null), false), (json!("verbatim"), true)] {
        let mut word = json!({"name": "word", "type": "string", "description": "One."});
        if passthrough.is_string() {
            word["passthrough"] = passthrough;
        }
        let file = json!({"description": "D.", "command": "demo", "positional_args": [word]});
        let checked = check_file("demo.json", &file.to_string());
        let tool = checked.tool.unwrap_or_else(|| panic!("{:?}", checked.problems));
        let (_, problems) = read_for("demo", &[tool], &["-x"]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].contains("and -- before"), helps, "{problems:?}");
    }
}

#[test]
fn an_option_whose_name_begins_with_a_dash_may_be_written_as_programs_want_it() {
    let file = json!({
        "description": "D.",
        "command": "demo",
        "options": [{"name": "-name", "type": "string", "description": "A pattern."}],
    });
    let checked = check_file("demo.json", &file.to_string());
    let tool = checked.tool.unwrap_or_else(|| panic!("{:?}", checked.problems));
    for words in [
        &["-name", "x"][..],
        &["-name=x"],
        &["--name", "x"],
        &["---name", "x"],
    ] {
        let (arguments, problems) = read_for("demo", std::slice::from_ref(&tool), words);
        assert_eq!(
            (arguments, problems),
            (json!({"-name": "x"}), Vec::new()),
            "{words:?}"
        );
    }
}
