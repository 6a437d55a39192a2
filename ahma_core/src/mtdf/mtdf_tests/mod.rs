//! Checks of tool files that the report of `ahma_validate` does not show.

mod mistakes;
mod names;
mod published_schema;
mod sequences;

use serde_json::{Value, json};

use super::{Problem, ToolSource, check_file};

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
