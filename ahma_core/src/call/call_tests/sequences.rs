//! Plans of sequences.

use std::time::Duration;

use serde_json::json;

use super::{argv, catalog, demo, planned, problems, settings};
use crate::call::{CallError, Program, SkipCondition, ToolCall, Work, plan};

#[test]
fn a_sequence_is_planned_as_a_whole() {
    let inner = json!({
        "name": "inner", "description": "I.", "command": "sequence", "step_delay_ms": 500,
        "sequence": [{ "tool": "sandboxed_shell", "args": { "command": "date" } }],
    });
    let outer = json!({
        "name": "outer", "description": "O.", "command": "sequence", "step_delay_ms": 100, "timeout_seconds": 9,
        "sequence": [
            { "tool": "demo", "args": { "verbose": true }, "description": "first", "skip_if_file_exists": "done" },
            { "tool": "inner" },
            { "tool": "demo", "subcommand": "default", "skip_if_file_missing": "/scope/x" },
        ],
    });
    let files = [demo(), inner, outer];
    let plan = planned(&files, "outer", json!({ "working_directory": "w" })).unwrap();
    assert_eq!(plan.timeout, Duration::from_secs(9));
    let Work::Sequence(sequence) = plan.work else {
        panic!("not a sequence")
    };
    assert_eq!(
        sequence.delay,
        Duration::from_millis(500),
        "the longest delay wins"
    );
    let labels: Vec<&str> = sequence.steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["demo", "sandboxed_shell", "demo"]);
    assert_eq!(
        argv(&sequence.steps[0].command.program),
        ["demo", "--fixed", "two words", "--verbose"]
    );
    assert_eq!(
        sequence.steps[0].skip,
        Some(SkipCondition::FileExists("/scope/w/done".into()))
    );
    assert_eq!(sequence.steps[1].command.program, Program::Script("date".into()));
    assert_eq!(
        sequence.steps[2].skip,
        Some(SkipCondition::FileMissing("/scope/x".into()))
    );

    let error = planned(&files, "outer", json!({ "verbose": true })).unwrap_err();
    assert_eq!(
        problems(error),
        ["`verbose` is not an argument of this tool, which takes none"]
    );
}

#[test]
fn a_sequence_needs_all_its_tools() {
    let sequence = json!({
        "name": "s", "description": "S.", "command": "sequence", "sequence": [{ "tool": "demo" }],
    });
    let without = catalog(&[demo(), sequence]).filtered(|tool| tool.name != "demo");
    let call = ToolCall {
        tool: "s".into(),
        ..ToolCall::default()
    };
    let error = plan(&without, &settings(), call).unwrap_err();
    assert_eq!(
        error,
        CallError::MissingStep {
            tool: "s".into(),
            step: "demo".into()
        }
    );
}
