//! JUnit XML: test cases count as progress, failures and errors are findings.

use crate::observe::stream_block::Rule;

/// The rules as a tool file would write them.
const RULES: &str = r#"[
  { "emit": "progress", "element": "testcase", "count": true, "phase": "{@classname}: {@name}" },
  { "emit": "finding", "element": "testcase", "where": { "failure": { "exists": true } },
    "finding": { "kind": "test-failure", "severity": "high", "id": "{@classname}::{@name}",
                 "title": "{@name} failed: {failure/@message}", "description": "{failure}",
                 "location": "{@file}:{@line}" } },
  { "emit": "finding", "element": "testcase", "where": { "error": { "exists": true } },
    "finding": { "kind": "test-error", "severity": "high", "id": "{@classname}::{@name}",
                 "title": "error in {@name}: {error/@message}", "description": "{error}",
                 "location": "{@file}:{@line}" } }
]"#;

#[expect(clippy::expect_used, reason = "a constant, and a test parses it")]
pub(crate) fn junit_rules() -> Vec<Rule> {
    serde_json::from_str(RULES).expect("the built-in rules are valid")
}
