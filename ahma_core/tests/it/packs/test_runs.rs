//! Programs that run tests, with tests that fail.

use serde_json::json;
use test_support::{needs, test_programs};

use super::{Project, needs_python};

const PYTEST: &str = "def add(a, b):\n    return a + b + 1\n\ndef test_add():\n    assert add(1, 2) == 3\n";

#[test]
fn pytest_shows_the_assertion() {
    if !needs_python("pytest") {
        return;
    }
    let mut project = Project::new(&["pytest.json"], &[("test_sums.py", PYTEST)]);
    let answer = project.finds("pytest", json!({}));
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high test_add: assert 4 == 3 + where 4 = add(1, 2) (test_sums.py:5)
    1 failed in [time]
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    project.write("test_sums.py", &PYTEST.replace(" + 1", ""));
    let answer = project.succeeds("pytest", json!({}));
    insta::assert_snapshot!(answer, @"1 passed in [time]");
}

const NODE_TEST: &str = "const test = require('node:test');\nconst assert = require('node:assert');\n\ntest('one and two are three', () => {\n  assert.strictEqual(1 + 2, 4);\n});\n\ntest('two and two are four', () => {\n  assert.strictEqual(2 + 2, 4);\n});\n";

#[test]
fn npm_test_shows_the_assertion() {
    let node = test_programs().join("node_modules/.bin/node");
    if !needs(node, &["--version"], "scripts/test-programs")
        || !needs("npm", &["--version"], "apt install npm")
    {
        return;
    }
    let package = r#"{ "name": "sums", "private": true, "scripts": { "test": "node --test" } }"#;
    let mut project = Project::new(
        &["npm.json"],
        &[("package.json", package), ("sums.test.js", NODE_TEST)],
    );
    let answer = project.finds("npm_test", json!({}));
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high one and two are three: Expected values to be strictly equal: 3 !== 4 (sums.test.js:5:10)
    tests 2
    pass 1
    fail 1
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    project.write("sums.test.js", &NODE_TEST.replace("1 + 2, 4", "1 + 2, 3"));
    let answer = project.succeeds("npm_test", json!({}));
    insta::assert_snapshot!(answer, @r"
    tests 2
    pass 2
    fail 0
    ");
}
