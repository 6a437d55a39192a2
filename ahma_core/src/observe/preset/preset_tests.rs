use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::junit_rules;
use crate::observe::{Observer, RunContext, StreamName, compile};

fn events_of(preset: &str, text: &str) -> Value {
    events_by(json!({ "preset": preset }), text)
}

fn events_by(block: Value, text: &str) -> Value {
    let block = serde_json::from_value(block).unwrap();
    let mut observer = Observer::new(Arc::new(compile(&block).unwrap()));
    let mut events = observer.feed(StreamName::Stdout, text.as_bytes(), Duration::ZERO);
    events.extend(observer.finish());
    serde_json::to_value(events).unwrap()
}

#[test]
fn the_junit_rules_are_valid() {
    assert_eq!(junit_rules().len(), 3);
}

#[test]
fn junit_failures_and_errors_are_findings() {
    let report = r#"<?xml version="1.0"?>
<testsuites><testsuite name="s" tests="4" file="s.py">
  <testcase classname="m.C" name="ok" time="0.1"/>
  <testcase classname="m.C" name="bad" file="m.py" line="7"><failure message="1 &lt; 2" type="E">trace
second line</failure></testcase>
  <testcase name="broke"><error message="boom"/><system-out>noise</system-out></testcase>
  <testcase classname="m.C" name="skip"><skipped/></testcase>
</testsuite></testsuites>"#;
    insta::assert_json_snapshot!(events_of("junit", report));
}

#[test]
fn sarif_results_know_their_rules() {
    let log = json!({ "version": "2.1.0", "runs": [
        { "tool": { "driver": { "name": "t", "rules": [
            { "id": "by-level", "defaultConfiguration": { "level": "note" }, "help": { "text": "do better" } },
            { "id": "by-score", "properties": { "security-severity": "9.1", "tags": ["x", "external/cwe/cwe-079"] },
              "messageStrings": { "m": { "text": "{0} meets {1}" } } } ] },
            "extensions": [{ "rules": [{ "id": "from-extension", "defaultConfiguration": { "level": "error" } }] }] },
          "results": [
            { "ruleId": "by-level", "message": { "text": "a" }, "fixes": [{ "description": { "text": "like this" } }],
              "locations": [{ "physicalLocation": { "artifactLocation": { "uri": "a.c" }, "region": { "startLine": 3 } } }] },
            { "ruleIndex": 1, "message": { "id": "m", "arguments": ["fox", "hare"] },
              "locations": [{ "logicalLocations": [{ "fullyQualifiedName": "n::f" }] }] },
            { "ruleId": "from-extension", "message": { "markdown": "**b**" } },
            { "rule": { "id": "CVE-2026-1" }, "level": "none", "message": { "text": "c" } },
            { "ruleId": "unknown", "message": "not an object" },
            "not a result",
            { "ruleId": "passed", "kind": "pass", "message": { "text": "" } },
            { "ruleId": "suppressed", "suppressions": [{ "kind": "inSource" }], "message": { "text": "" } },
            { "ruleId": "not suppressed", "suppressions": [{ "kind": "inSource", "status": "rejected" }], "message": { "text": "" } },
            { "ruleId": "gone", "baselineState": "absent", "message": { "text": "" } } ] },
        { "tool": { "driver": { "name": "second" } }, "results": [{ "ruleId": "second-run", "message": { "text": "d" } }] },
        { "results": null }, 7 ] });
    insta::assert_json_snapshot!(events_of("sarif", &serde_json::to_string_pretty(&log).unwrap()));
}

#[test]
fn sarif_messages_and_paths_are_complete() {
    let log = json!({ "runs": [{
        "originalUriBaseIds": { "SRC": { "uri": "file:///project/src/" }, "ROOT": { "description": { "text": "no address" } } },
        "artifacts": [{ "location": { "uri": "listed%20file.c", "uriBaseId": "ROOT" } }],
        "results": [
            { "ruleId": "a", "level": "error", "message": { "text": "{0} is {1} in {{0}} and {2}", "arguments": ["{1}", "two"] },
              "locations": [{ "physicalLocation": { "artifactLocation": { "uri": "a.c", "uriBaseId": "SRC" }, "region": { "startLine": 1 } } }] },
            { "ruleId": "b", "properties": { "security-severity": 4.1 }, "message": { "text": "b" },
              "locations": [{ "physicalLocation": { "artifactLocation": { "index": 0 } } }] } ] }] });
    let block = serde_json::from_value(json!({ "preset": "sarif" })).unwrap();
    let run = RunContext {
        directory: Some("/project".into()),
        ..RunContext::default()
    };
    let mut observer = Observer::for_run(Arc::new(compile(&block).unwrap()), run);
    let events = observer.feed(StreamName::Stdout, log.to_string().as_bytes(), Duration::ZERO);
    let events = serde_json::to_value(events).unwrap();
    let told: Vec<_> = (events.as_array().unwrap().iter())
        .map(|event| [&event["severity"], &event["title"], &event["location"]])
        .collect();
    assert_eq!(
        json!(told),
        json!([
            ["high", "{1} is two in {0} and {2}", "src/a.c:1"],
            ["medium", "b", "listed file.c"]
        ])
    );
}

#[test]
fn own_rules_stand_beside_a_preset() {
    let sarif = json!({ "runs": [{ "results": [{ "ruleId": "r" }], "artifacts": [{ "roles": ["odd"] }] }] });
    let junit = "<testsuite name='s'><testcase name='n'><error/></testcase></testsuite>";
    for (preset, rule, report) in [
        (
            "sarif",
            json!({ "each": "/runs/*/artifacts", "where": { "/roles/0": "odd" } }),
            sarif.to_string(),
        ),
        ("junit", json!({ "element": "testsuite" }), junit.to_owned()),
    ] {
        let mut rule = rule;
        rule["emit"] = "finding".into();
        rule["finding"] = json!({ "id": "own" });
        let events = events_by(json!({ "preset": preset, "rules": [rule] }), &report);
        let events = events.as_array().unwrap();
        let found: Vec<_> = events
            .iter()
            .filter(|event| event["event"] == "finding")
            .collect();
        assert_eq!(found.len(), 2, "{preset}: {found:?}");
        assert!(
            found.iter().any(|finding| finding["id"] == "own"),
            "{preset}: {found:?}"
        );
    }
}
