use serde_json::json;

use super::*;
use crate::{
    catalog::{Catalog, CatalogSettings},
    mtdf::check_file,
};

fn read_words(words: &[&str]) -> Result<Value, String> {
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

fn read_for(name: &str, tools: &[crate::mtdf::ToolDef], words: &[&str]) -> Result<Value, String> {
    let catalog = Catalog::build(tools, CatalogSettings::default());
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let read = read(catalog.get(name).expect("it was built"), &words);
    read.map(Value::from).map_err(|error| error.to_string())
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
        (&["--timeout-seconds", "0.5"], json!({"timeout_seconds": 0.5})),
        (&["--timeout-seconds", "2"], json!({"timeout_seconds": 2})),
    ] {
        assert_eq!(read_words(words), Ok(expected), "{words:?}");
    }
}

#[test]
fn a_mistake_is_named_with_what_may_be_meant() {
    for (words, expected) in [
        (
            &["--max-count", "--ratio", "1"][..],
            &["a value is required for '--max-count <integer>'"][..],
        ),
        (
            &["--max-count", "1", "--n", "2"],
            &["'--max-count <integer>' cannot be used multiple times"],
        ),
        (
            &["--max-cuont", "1"],
            &["unexpected argument '--max-cuont'", "'--max-count'"],
        ),
        (&["-x"], &["unexpected argument '-x'"]),
        (
            &["--source", "x", "--others", "y", "z"],
            &["unexpected argument 'z'"],
        ),
        (&["--execution-mode", "synchronous"], &["'--execution-mode'"]),
        (&["--network", "off"], &["is a flag of the server"]),
    ] {
        let error = read_words(words).expect_err("a mistake");
        for expected in expected {
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}

#[test]
fn help_shows_what_the_schema_says() {
    insta::assert_snapshot!(read_words(&["--help"]).expect_err("help"));
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
        (&["ls", "--timeout-seconds", "3"], None),
    ] {
        match (read_for(crate::mtdf::SHELL_TOOL, &[], words), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => assert!(error.contains(expected), "{words:?}: {error}"),
            (read, _) => panic!("{words:?}: {read:?}"),
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
        let error = read_for("demo", &[tool], &["-x"]).expect_err("no option");
        assert_eq!(error.contains("use '-- -x'"), helps, "{error}");
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
    for words in [&["-name", "x"][..], &["-name=x"], &["--name", "x"]] {
        let read = read_for("demo", std::slice::from_ref(&tool), words);
        assert_eq!(read, Ok(json!({"-name": "x"})), "{words:?}");
    }
}
