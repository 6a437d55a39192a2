//! Linters, type checkers and formatters, and the tools for data.

use serde_json::json;
use test_support::needs;

use super::{Project, needs_python};

const SCRIPT: &str = "#!/bin/sh\necho $1\n";

#[test]
fn shellcheck_names_mistakes() {
    if !needs("shellcheck", &["--version"], "apt install shellcheck") {
        return;
    }
    let mut project = Project::new(
        &["shellcheck.json"],
        &[("a.sh", SCRIPT), ("b.sh", "#!/bin/sh\necho hi\n")],
    );
    let answer = project.finds("shellcheck", json!({"files": ["a.sh"]}));
    insta::assert_snapshot!(answer, @r"
    findings: 1 low
    - low SC2086: Double quote to prevent globbing and word splitting. (a.sh:2:6)
    ");
    let answer = project.succeeds("shellcheck", json!({"files": ["b.sh"]}));
    insta::assert_snapshot!(answer, @"(no output)");
}

#[test]
fn ruff_reports_sarif() {
    if !needs_python("ruff") {
        return;
    }
    let mut project = Project::new(
        &["ruff.json"],
        &[
            ("a.py", "import os\n\nprint(undefined)\n"),
            ("b.py", "print(1)\n"),
        ],
    );
    let answer = project.finds("ruff_check", json!({"paths": ["a.py"], "select": ["F"]}));
    insta::assert_snapshot!(answer, @r"
    findings: 2 high
    - high F401: `os` imported but unused (a.py:1:8)
    - high F821: Undefined name `undefined` (a.py:3:7)
    ");
    let answer = project.succeeds("ruff_check", json!({"paths": ["b.py"], "select": ["F"]}));
    insta::assert_snapshot!(answer, @"completed after [time] · [id]");
    project.write("c.py", "x = ( 1 )\n");
    project.succeeds("ruff_format", json!({"paths": ["c.py"]}));
}

#[test]
fn mypy_names_wrong_types() {
    if !needs_python("mypy") {
        return;
    }
    let mut project = Project::new(
        &["mypy.json"],
        &[("a.py", "x: int = \"a\"\n"), ("b.py", "x: int = 1\n")],
    );
    let answer = project.finds("mypy", json!({"paths": ["a.py"]}));
    insta::assert_snapshot!(answer, @r#"
    findings: 1 high
    - high Incompatible types in assignment (expression has type "str", variable has type "int") (a.py:1:10)
    "#);
    let answer = project.succeeds("mypy", json!({"paths": ["b.py"]}));
    insta::assert_snapshot!(answer, @"Success: no issues found in 1 source file");
}

#[test]
fn bandit_rates_dangerous_code() {
    if !needs_python("bandit") {
        return;
    }
    let mut project = Project::new(&["bandit.json"], &[("a.py", "eval(input())\n")]);
    let answer = project.finds("bandit", json!({"paths": ["a.py"]}));
    let finding = &answer.data["findings"][0];
    assert_eq!(
        (&finding["id"], &finding["cwe"]),
        (&json!("B307"), &json!("CWE-78")),
        "{}",
        answer.text
    );
    insta::assert_snapshot!(answer, @r"
    findings: 1 medium
    - medium B307: Use of possibly insecure function - consider using safer ast.literal_eval. (a.py:1:0)
    ");
}

#[test]
fn hadolint_names_mistakes_of_a_dockerfile() {
    if !needs_python("hadolint") {
        return;
    }
    let mut project = Project::new(
        &["hadolint.json"],
        &[("Dockerfile", "FROM debian\nRUN echo hi\n")],
    );
    let answer = project.finds("hadolint", json!({"files": ["Dockerfile"]}));
    insta::assert_snapshot!(answer, @r"
    findings: 1 medium
    - medium DL3006: Always tag the version of an image explicitly (Dockerfile:1)
    ");
}

#[test]
fn shfmt_formats_a_script() {
    if !needs_python("shfmt") {
        return;
    }
    let mut project = Project::new(&["shfmt.json"], &[("a.sh", "if x; then\necho\nfi\n")]);
    let answer = project.finds("shfmt", json!({"paths": ["a.sh"], "diff": true}));
    assert!(answer.text.contains("+\techo"), "{}", answer.text);
    project.succeeds("shfmt", json!({"paths": ["a.sh"], "write": true}));
    project.succeeds("shfmt", json!({"paths": ["a.sh"], "diff": true}));
}

#[test]
fn just_runs_recipes() {
    if !needs_python("just") {
        return;
    }
    let mut project = Project::new(
        &["just.json"],
        &[(
            "justfile",
            "greet name:\n  @echo hello {{name}}\nbad:\n  @false\n",
        )],
    );
    let answer = project.succeeds("just", json!({"recipes": ["greet", "world"]}));
    assert!(answer.text.contains("hello world"), "{}", answer.text);
    let answer = project.finds("just", json!({"recipes": ["bad"]}));
    assert!(answer.text.contains("recipe `bad` failed"), "{}", answer.text);
}

#[test]
fn jq_and_sqlite_answer_queries() {
    if !needs("jq", &["--version"], "apt install jq")
        || !needs("sqlite3", &["--version"], "apt install sqlite3")
    {
        return;
    }
    let mut project = Project::new(&["jq.json", "sqlite3.json"], &[("a.json", "{\"b\": [1, 2]}")]);
    let answer = project.succeeds("jq", json!({"query": ".b[1]", "files": ["a.json"]}));
    assert_eq!(answer.text.trim(), "2");
    project.finds("jq", json!({"filter": ".b[", "files": ["a.json"]}));
    let sql = "create table t (x); insert into t values (7); select x from t;";
    let answer = project.succeeds("sqlite3", json!({"db": "a.db", "query": sql}));
    assert_eq!(answer.text.trim(), "7");
    let answer = project.finds("sqlite3", json!({"db": "a.db", "sql": "select y from t"}));
    assert!(answer.text.contains("no such column: y"), "{}", answer.text);
}
