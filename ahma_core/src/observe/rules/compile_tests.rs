use serde_json::{Value, json};

use super::{StdioNeed, compile};
use crate::observe::stream_block::StreamBlock;

fn problems_of(block: Value) -> Vec<String> {
    let block: StreamBlock = serde_json::from_value(block).unwrap();
    match compile(&block) {
        Ok(_) => Vec::new(),
        Err(problems) => problems
            .into_iter()
            .map(|problem| format!("{}: {}", problem.pointer, problem.message))
            .collect(),
    }
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let finding = json!({ "id": "x" });
    let blocks = [
        json!({}),
        json!({ "rules": [{ "emit": "phase", "phase": "x" }] }),
        json!({ "rules": [{ "emit": "phase", "match": "(", "phase": "x" }, { "emit": "phase", "match": "(?=x)", "phase": "x" }] }),
        json!({ "rules": [{ "emit": "phase", "match": "\\pQ", "phase": "x" }, { "emit": "phase", "match": "(\\w{999}){999}", "phase": "x" }] }),
        json!({ "rules": [{ "emit": "phase", "match": "(?P<a>x)", "phase": "{b}" }] }),
        json!({ "rules": [{ "emit": "phase", "match": "x", "phase": "{b}" }] }),
        json!({ "rules": [{ "emit": "phase", "match": "x" }] }),
        json!({ "rules": [{ "emit": "phase", "match": "(?P<a>x)", "next": "(?P<a>y)(?P<b>z)", "phase": "{c}" }] }),
        json!({ "rules": [{ "emit": "phase", "match": "(", "next": ")", "phase": "x" }] }),
        json!({ "framing": "xml", "rules": [{ "emit": "ignore", "element": "a", "next": "x" }] }),
        json!({ "rules": [{ "emit": "progress", "match": "x" }] }),
        json!({ "rules": [{ "emit": "finding", "match": "x", "count": true }] }),
        json!({ "rules": [{ "emit": "progress", "match": "x", "count": true, "finding": finding }] }),
        json!({ "rules": [{ "emit": "finding", "match": "x", "finding": { "severity": "dreadful" } }] }),
        json!({ "rules": [{ "emit": "finding", "match": "x", "finding": {
            "id": "{", "severity": { "from": "{0}", "map": { "a": "huge" }, "default": "tiny" } } }] }),
        json!({ "rules": [{ "emit": "ignore", "match": "x", "where": { "/a": 1 }, "each": "/a", "element": "a" }] }),
        json!({ "framing": "json-lines", "rules": [{ "emit": "ignore", "where": { "a": 1, "/b": [] }, "each": "a" }] }),
        json!({ "framing": "json-lines", "rules": [{ "emit": "ignore", "element": "a" }] }),
        json!({ "framing": "json-document", "rules": [{ "emit": "ignore", "match": "a" }] }),
        json!({ "framing": "json-document", "rules": [{ "emit": "ignore", "on": "stderr", "where": { "/a": 1 } }] }),
        json!({ "framing": "xml", "rules": [{ "emit": "ignore" }, { "emit": "ignore", "element": "a/b" }] }),
        json!({ "framing": "xml", "rules": [{ "emit": "ignore", "element": "a", "match": "x", "each": "/a" }] }),
        json!({ "framing": "xml", "rules": [{ "emit": "phase", "element": "a", "where": { "a//b": 1 }, "phase": "{/a}" }] }),
        json!({ "framing": "lines", "preset": "sarif" }),
        json!({ "preset": "junit", "rules": [{ "emit": "ignore", "match": "x" }] }),
        json!({ "preset": "sarif", "phases": ["a", "", "A", { "name": "b", "weight": 0 }] }),
        json!({ "preset": "sarif", "limits": { "max_findings": 0, "max_frame_bytes": 999999999, "max_document_bytes": 999999999 } }),
        json!({ "preset": "sarif", "env": { "A=B": "x", "": "y", "C": "\u{0}" }, "append_args": ["ok", "\u{0}"] }),
        json!({ "pty": true, "streams": "separate", "rules": [{ "emit": "ignore", "match": "x" }] }),
        json!({ "pty": true, "rules": [{ "emit": "ignore", "on": "stdout", "match": "x" }] }),
        json!({ "streams": "merged", "rules": [{ "emit": "ignore", "on": "stderr", "match": "x" }] }),
    ];
    let report = blocks.into_iter().map(|block| {
        let text = block.to_string();
        let problems = problems_of(block);
        assert!(!problems.is_empty(), "{text}");
        format!("{text}\n  {}\n", problems.join("\n  "))
    });
    insta::assert_snapshot!(report.collect::<String>());
}

#[test]
fn unknown_and_missing_fields_are_refused() {
    for block in [
        json!({ "frames": "lines" }),
        json!({ "rules": [{ "emit": "ignore", "matches": "x" }] }),
        json!({ "rules": [{ "emit": "finding", "match": "x", "finding": { "name": "x" } }] }),
        json!({ "rules": [{ "emit": "phase", "match": "x", "phase": { "from": "x", "maps": {} } }] }),
        json!({ "phases": [{ "name": "x", "wait": 1 }] }),
        json!({ "limits": { "max": 1 } }),
        json!({ "rules": [{ "match": "x" }] }),
    ] {
        assert!(
            serde_json::from_value::<StreamBlock>(block.clone()).is_err(),
            "{block}"
        );
    }
}

#[test]
fn a_block_brings_arguments_variables_and_limits() {
    let block = json!({
        "framing": "json-lines", "append_args": ["--json"], "env": { "A": "b" }, "phases": ["a", { "name": "b", "weight": 2.5 }],
        "rules": [
            { "emit": "finding", "where": { "/a": ["x", 1, true], "/b": { "exists": false } },
              "finding": { "id": { "from": "{/id}", "default": "none" }, "severity": "low" } },
            { "emit": "progress", "on": "stderr", "match": "x", "count": true } ],
        "limits": { "max_findings": 5 }
    });
    let block: StreamBlock = serde_json::from_value(block).unwrap();
    let rules = compile(&block).unwrap();
    assert_eq!(rules.append_args(), ["--json"]);
    assert_eq!(rules.env()["A"], "b");
    assert_eq!(rules.stdio(), StdioNeed::Separate);
    assert_eq!(rules.max_findings(), 5);
}

#[test]
fn the_streams_a_tool_gets_follow_from_its_rules() {
    let line_rule = json!({ "emit": "ignore", "match": "x" });
    let stderr_rule = json!({ "emit": "ignore", "on": "stderr", "match": "x" });
    let check = |block: Value, expected| {
        let block: StreamBlock = serde_json::from_value(block).unwrap();
        assert_eq!(compile(&block).unwrap().stdio(), expected, "{block:?}");
    };
    check(json!({ "rules": [line_rule] }), StdioNeed::Separate);
    check(
        json!({ "streams": "merged", "rules": [line_rule] }),
        StdioNeed::Merged,
    );
    check(json!({ "rules": [line_rule, stderr_rule] }), StdioNeed::Separate);
    check(
        json!({ "streams": "separate", "rules": [line_rule] }),
        StdioNeed::Separate,
    );
    check(json!({ "pty": true, "rules": [line_rule] }), StdioNeed::Pty);
    check(json!({ "preset": "junit" }), StdioNeed::Separate);
    check(
        json!({ "preset": "junit", "streams": "merged" }),
        StdioNeed::Merged,
    );
    check(json!({ "preset": "sarif", "pty": true }), StdioNeed::Pty);
}
