//! Names and forms of arguments that are taken although the schema says otherwise, and the tools that are meant by other names.

use serde_json::json;

use super::{check, check_refused, command, demo, planned};
use crate::call::{CallError, Program};
use crate::catalog::Catalog;
use crate::catalog::CatalogSettings;

/// The names and forms that agents use although the schema has others.
#[test]
fn what_can_only_mean_one_thing_is_taken() {
    let tool = json!({
        "name": "t", "description": "T.", "command": "t",
        "options": [
            { "name": "all-features", "type": "boolean" },
            { "name": "no-run", "type": "boolean" },
            { "name": "tests", "type": "array" },
            { "name": "max_count", "type": "integer", "alias": "n", "aliases": ["limit"] },
            { "name": "message", "type": "string", "aliases": ["msg"] },
            { "name": "ratio", "type": "number" },
            { "name": "i", "type": "boolean", "alias": "i2" },
            { "name": "working-directory", "type": "string" },
        ],
    });
    for (arguments, expected) in [
        (
            json!({ "all_features": true, "no_run": true }),
            &["--all-features", "--no-run"][..],
        ),
        (
            json!({ "allFeatures": "true", "--no-run": "False" }),
            &["--all-features"],
        ),
        (json!({ "tests": "x" }), &["--tests", "x"]),
        (json!({ "max-count": "3" }), &["-n", "3"]),
        (json!({ "limit": 3, "msg": 5 }), &["-n", "3", "--message", "5"]),
        (
            json!({ "message": true, "ratio": "0.5" }),
            &["--message", "true", "--ratio", "0.5"],
        ),
        (
            json!({ "workingDirectory": ".", "timeout-seconds": "5", "executionMode": "synchronous" }),
            &[],
        ),
        (json!({ "working-directory": "x" }), &["--working-directory", "x"]),
    ] {
        let expected: Vec<&str> = std::iter::once("t").chain(expected.iter().copied()).collect();
        check(tool.clone(), "t", arguments, &expected);
    }
    for (arguments, expected) in [
        (
            json!({ "all_features": true, "all-features": true }),
            "`all-features` is given twice, also as `all_features`",
        ),
        (
            json!({ "limit": 1, "n": 2 }),
            "`max_count` is given twice, also as `limit`",
        ),
        (
            json!({ "working_directory": ".", "workingDirectory": "." }),
            "`working_directory` is given twice, in two spellings",
        ),
        (
            json!({ "I": true }),
            "`I` is not an argument of this tool; did you mean `i`?",
        ),
        (
            json!({ "all_features": "yes" }),
            "`all-features` must be a boolean, not string",
        ),
    ] {
        check_refused(tool.clone(), "t", arguments, &[expected]);
    }
}

#[test]
fn the_shell_takes_its_script_under_other_names() {
    for arguments in [
        json!({ "cmd": "ls" }),
        json!({ "script": "ls" }),
        json!({ "command": ["ls"] }),
    ] {
        let plan = planned(&[], "sandboxed_shell", arguments).unwrap();
        assert_eq!(command(plan).program, Program::Script("ls".into()));
    }
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let error = planned(&[demo()], "deno", json!({})).unwrap_err();
    assert_eq!(
        error,
        CallError::UnknownTool {
            name: "deno".into(),
            nearest: vec!["demo".into()]
        }
    );
    assert_eq!(
        error.to_string(),
        "no tool is called `deno`; did you mean `demo`?"
    );
    let error = planned(&[demo()], "shell", json!({})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no tool is called `shell`; did you mean `sandboxed_shell`?"
    );
}

#[test]
fn tools_known_from_elsewhere_are_answered_with_those_that_do_the_same() {
    let catalog = Catalog::build(
        &[],
        CatalogSettings {
            files: true,
            ..CatalogSettings::default()
        },
    );
    for (name, expected) in [
        ("bash", "sandboxed_shell"),
        ("Bash", "sandboxed_shell"),
        ("shell", "sandboxed_shell"),
        ("run", "sandboxed_shell"),
        ("exec", "sandboxed_shell"),
        ("execute_command", "sandboxed_shell"),
        ("terminal", "sandboxed_shell"),
        ("run_command", "sandboxed_shell"),
        ("read_file", "file_read"),
        ("view", "file_read"),
        ("cat", "file_read"),
        ("str_replace", "file_edit"),
        ("edit_file", "file_edit"),
        ("write_file", "file_write"),
        ("apply_patch", "file_patch"),
        ("wait", "await"),
        ("KillShell", "cancel"),
    ] {
        assert_eq!(catalog.nearest(name).first(), Some(&expected), "{name}");
    }
    let without_files = Catalog::build(&[], CatalogSettings::default());
    assert_eq!(without_files.nearest("read_file"), ["sandboxed_shell"]);
}
