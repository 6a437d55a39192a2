//! Calls through the whole pure line: tool file, catalogue, plan.

mod command_lines;
mod forms;
mod mistakes;
mod plans;
mod sequences;

use std::time::Duration;

use serde_json::{Value, json};

use super::{CallError, Command, CommandPlan, PlanSettings, Program, ToolCall, Work, plan};
use crate::{
    catalog::{Catalog, CatalogSettings},
    mtdf::{ToolSource, check_set},
};

fn settings() -> PlanSettings {
    PlanSettings {
        scope: "/scope".into(),
        scope_aliases: vec!["/link-to-scope".into()],
        also_allowed: vec!["/private/tmp".into()],
        readable: vec!["/usr".into()],
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
