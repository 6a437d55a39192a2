use serde_json::json;

use super::*;

fn asked(tool: FileTool, arguments: Value) -> Result<FileRequest, Vec<String>> {
    let Value::Object(arguments) = arguments else {
        panic!("not an object");
    };
    request(tool, &arguments).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn edit(old: &str, new: &str) -> TextEdit {
    TextEdit {
        old: old.into(),
        new: new.into(),
        all: false,
    }
}

#[test]
fn what_can_only_mean_one_thing_is_taken() {
    let expected = Ok(FileRequest::Read(ReadRequest {
        paths: vec!["a".into()],
        from_line: 3,
        max_lines: DEFAULT_MAX_LINES,
        max_bytes: MAX_READ_BYTES,
    }));
    for arguments in [
        json!({"path": "a", "from_line": 3}),
        json!({"path": ["a"], "from_line": "3", "max_lines": null}),
        json!({"paths": "a", "from-line": 3}),
        json!({"file_path": "a", "offset": 3}),
    ] {
        assert_eq!(asked(FileTool::Read, arguments), expected);
    }
    let expected = Ok(FileRequest::Edit {
        path: "a".into(),
        edits: vec![edit("x", "y")],
    });
    for arguments in [
        json!({"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        json!({"path": "a", "edits": {"old": "x", "new": "y"}}),
        json!({"path": "a", "old": "x", "new": "y"}),
        json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": "false"}),
        json!({"path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}),
    ] {
        assert_eq!(asked(FileTool::Edit, arguments), expected);
    }
}

#[test]
fn every_mistake_is_named_at_once() {
    insta::assert_debug_snapshot!(asked(FileTool::Read, json!({"from_line": 0, "cwd": "a", "zzz": 1})).unwrap_err(), @r#"
    [
        "`path` is required",
        "`from_line` must be an integer of at least 1, not 0",
        "`cwd` is not an argument of this tool; did you mean `working_directory`?",
        "`zzz` is not an argument of this tool",
    ]
    "#);
    insta::assert_debug_snapshot!(asked(FileTool::Edit, json!({"edits": [{"old": "x"}]})).unwrap_err(), @r#"
    [
        "`path` is required",
        "`edits` must be an array of {old, new, all?} with strings `old` and `new`, not [{\"old\":\"x\"}]",
        "`edits` must have at least one {old, new}",
    ]
    "#);
}

#[test]
fn a_home_that_only_a_shell_knows_is_refused() {
    insta::assert_debug_snapshot!(asked(FileTool::Read, json!({"paths": ["a~", "~/.bashrc"]})).unwrap_err(), @r#"
    [
        "`path` is `~/.bashrc`, and only a shell expands `~`: give the whole path",
    ]
    "#);
}
