//! Mistakes in arguments, all of them at once.

use std::path::PathBuf;

use serde_json::json;

use super::{check, check_refused, demo, planned};

#[test]
fn every_mistake_of_a_call_is_listed() {
    check_refused(
        demo(),
        "demo",
        json!({
            "message": 5, "m": "twice", "verbose": "yes", "level": "medium", "count": 10, "ratio": "x", "tag": ["a", true],
            "mesage": "typo", "zzz": 1, "execution_mode": "later", "timeout_seconds": 0, "working_directory": "/etc",
        }),
        &[
            "`execution_mode` must be `synchronous` or `asynchronous`, not \"later\"",
            "`timeout_seconds` must be a number of seconds from 1 to 604800 (a week), not 0",
            "`working_directory` `/etc` is outside the sandbox scope `/scope`",
            "`message` is given twice, also as `m`",
            "`verbose` must be a boolean, not string",
            "`level` must be one of `low`, `high`, not `medium`",
            "`count` must be at most 9, not 10",
            "`ratio` must be a number, not string",
            "`tag` element 1 must be a string, not boolean",
            "`mesage` is not an argument of this tool; did you mean `message`?",
            "`zzz` is not an argument of this tool",
        ],
    );
}

/// Wrong values are reported together with wrong names and types.
#[test]
fn mistakes_of_every_kind_are_listed_at_once() {
    check_refused(
        demo(),
        "demo",
        json!({
            "zzz": 1, "count": "x", "config": "/etc/passwd", "input": "-rf", "all": [1, -2],
            "working_directory": "/etc",
        }),
        &[
            "`working_directory` `/etc` is outside the sandbox scope `/scope`",
            "`count` must be an integer, not string",
            "`zzz` is not an argument of this tool",
            "`all` must not have elements that begin with a dash, such as `-2`",
            "`config` `/etc/passwd` is outside the sandbox scope `/scope`, and no `--allow-read` opens it",
            "`input` must not begin with a dash, because it could be taken for an option: `-rf`",
        ],
    );
    // One that is wrong is not missing as well.
    check_refused(
        demo(),
        "demo",
        json!({ "input": {}, "rest": ["x"] }),
        &["`input` must be a string, not object"],
    );
}

#[test]
fn what_is_required_must_be_there() {
    let tool = json!({
        "name": "t", "description": "T.", "command": "t",
        "options": [{ "name": "text", "type": "string", "alias": "x", "required": true }],
        "positional_args": [{ "name": "files", "type": "array", "required": true }],
    });
    let missing = ["`text` is required", "`files` is required"];
    check_refused(tool.clone(), "t", json!({}), &missing);
    check_refused(
        tool.clone(),
        "t",
        json!({ "text": null, "files": null }),
        &missing,
    );
    check_refused(
        tool.clone(),
        "t",
        json!({ "x": "", "files": [] }),
        &["`files` must not be empty"],
    );
    check(tool, "t", json!({ "x": "", "files": [""] }), &["t", "-x", "", ""]);
}

#[test]
fn paths_are_judged_against_the_scope() {
    let inside = [
        "a",
        "../scope/a",
        "/scope/a/../b",
        "/private/tmp/x",
        "/dev/null",
        "/link-to-scope/a",
        ".",
    ];
    for path in inside {
        check(
            demo(),
            "demo",
            json!({ "config": path }),
            &["demo", "--fixed", "two words", "--config", path],
        );
    }
    let outside = [
        (
            "/etc/passwd",
            "`config` `/etc/passwd` is outside the sandbox scope `/scope`, and no `--allow-read` opens it",
        ),
        (
            "/scope-too/x",
            "`config` `/scope-too/x` is outside the sandbox scope `/scope`, and no `--allow-read` opens it",
        ),
        (
            "../x",
            "`config` `../x` leads to `/x`, outside the sandbox scope `/scope`, and no `--allow-read` opens it",
        ),
        (
            "a/../../../../x",
            "`config` `a/../../../../x` leads to `/x`, outside the sandbox scope `/scope`, and no `--allow-read` opens it",
        ),
        ("", "`config` must name a file"),
        (
            "~/x",
            "`config` is `~/x`, and only a shell expands `~`: give the whole path",
        ),
    ];
    for (path, expected) in outside {
        check_refused(demo(), "demo", json!({ "config": path }), &[expected]);
    }
    check_refused(
        demo(),
        "demo",
        json!({ "config": "../../x", "working_directory": "deep" }),
        &[
            "`config` `../../x` leads to `/x`, outside the sandbox scope `/scope`, and no `--allow-read` opens it",
        ],
    );
}

#[test]
fn the_working_directory_is_judged_as_paths_are() {
    let cases = [
        (json!({}), "/scope"),
        (json!({ "working_directory": "" }), "/scope"),
        (json!({ "working_directory": "a/./b/.." }), "/scope/a"),
        (json!({ "working_directory": "/scope/a" }), "/scope/a"),
        (
            json!({ "working_directory": "/link-to-scope/a" }),
            "/link-to-scope/a",
        ),
        // As for paths in arguments.
        (json!({ "working_directory": "/private/tmp/x" }), "/private/tmp/x"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            planned(&[demo()], "demo", arguments).unwrap().directory,
            PathBuf::from(expected)
        );
    }
    check_refused(
        demo(),
        "demo",
        json!({ "working_directory": "~" }),
        &["`working_directory` is `~`, and only a shell expands `~`: give the whole path"],
    );
}
