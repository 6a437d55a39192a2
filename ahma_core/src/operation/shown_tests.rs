use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::observe::{Observer, StreamName, compile, stream_block::StreamBlock};

fn shown(block: Value, output: &str) -> (Shown, Excerpt) {
    let block: StreamBlock = serde_json::from_value(block).unwrap();
    let rules = Arc::new(compile(&block).unwrap());
    let mut observer = Observer::new(Arc::clone(&rules));
    observer.feed(StreamName::Stdout, output.as_bytes(), Duration::ZERO);
    observer.finish();
    let mut shown = Shown::default();
    shown.add(Some(&rules), Some(observer.into_digest()));
    let whole = Excerpt {
        text: output.to_owned(),
        total_lines: output.lines().count() as u64,
        total_bytes: output.len() as u64,
        left_out: None,
    };
    (shown, whole)
}

fn text(show: &str, state: EndState, output: &str) -> String {
    let block = json!({
        "show": show,
        "rules": [
            { "emit": "noise", "match": "^Compiling " },
            { "emit": "summary", "match": "^test result: " },
            { "emit": "finding", "match": "^error: (?P<what>.+)$", "finding": { "title": "{what}" } },
        ],
    });
    let (shown, whole) = shown(block, output);
    shown
        .excerpt(
            whole,
            state,
            output.contains("error: "),
            &OperationId::recalled("op_x"),
        )
        .text
}

const FAILED: &str =
    "Compiling a\nrunning 1 test\nerror: it is broken\nwhy it is broken\ntest result: FAILED\n";

#[test]
fn a_failure_shows_what_no_rule_knows_and_the_summary() {
    let expected = "running 1 test\nwhy it is broken\ntest result: FAILED\n\
                    [5 lines in all: output {\"operation_id\": \"op_x\"}]";
    assert_eq!(text("findings", EndState::Failed, FAILED), expected);
    assert_eq!(text("summary", EndState::Failed, FAILED), expected);
}

#[test]
fn a_success_shows_its_summary_or_the_little_there_is() {
    let output = "Compiling a\nrunning 1 test\ntest result: ok\n";
    assert_eq!(text("summary", EndState::Completed, output), "test result: ok");
    assert_eq!(
        text("summary", EndState::Completed, "all is well\n"),
        "all is well"
    );
    assert_eq!(text("summary", EndState::Completed, &"a line\n".repeat(100)), "");
}

#[test]
fn noise_is_never_shown() {
    let expected = FAILED.trim_start_matches("Compiling a\n");
    assert_eq!(text("output", EndState::Failed, FAILED), expected);
}

#[test]
fn a_command_without_rules_has_all_of_its_output_shown() {
    let (mut shown, _) = shown(
        json!({ "show": "summary", "rules": [{ "emit": "noise", "match": "x" }] }),
        "",
    );
    assert_eq!(shown.show(), Show::Summary);
    shown.add(None, None);
    assert_eq!(shown.show(), Show::Output);
}
