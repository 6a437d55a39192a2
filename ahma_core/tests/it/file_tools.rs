//! The file tools through a real server: confined by the kernel, all or nothing, short in what they say.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ahma_mcp");

fn open(workspace: &Workspace, tier: &str) -> Server {
    ServerOptions::new(PROGRAM, workspace)
        .args(["--sandbox-tier", tier])
        .open(Era::Legacy)
}

/// Text of a result, and whether it is an error.
fn answer(server: &mut Server, tool: &str, arguments: Value) -> (String, bool) {
    let result = server.tool(tool, arguments);
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["isError"] == json!(true))
}

#[test]
fn files_are_read_written_edited_and_patched_in_both_tiers() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let server = &mut open(&workspace, tier);
        let (text, failed) = answer(
            server,
            "file_write",
            json!({ "path": "src/a.txt", "content": "one\ntwo\n" }),
        );
        assert!(!failed && text.contains("created src/a.txt: 2 lines"), "{text}");
        let edits = json!([{ "old": "two", "new": "2" }]);
        let (text, failed) = answer(
            server,
            "file_edit",
            json!({ "path": "src/a.txt", "edits": edits }),
        );
        assert!(!failed && text.contains("edited src/a.txt\n2\t2"), "{text}");
        let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -7,1 +7,1 @@\n-one\n+1\n";
        let (text, failed) = answer(
            server,
            "file_patch",
            json!({ "patch": patch, "working_directory": "src" }),
        );
        assert!(!failed && text.contains("patched a.txt\n1\t1"), "{text}");
        let (text, failed) = answer(server, "file_read", json!({ "paths": ["src/a.txt", "src"] }));
        assert!(
            !failed && text.contains("1\t1\n2\t2\n") && text.contains("(directory)\na.txt"),
            "{text}"
        );
        assert_eq!(
            fs::read_to_string(workspace.scope().join("src/a.txt")).unwrap(),
            "1\n2\n"
        );
    }
}

#[test]
fn nothing_outside_the_scope_is_reached() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let secret = workspace.home().join("secret.txt");
        fs::write(&secret, "key\n").unwrap();
        symlink(&secret, workspace.scope().join("link")).unwrap();
        symlink(workspace.home(), workspace.scope().join("home")).unwrap();
        let server = &mut open(&workspace, tier);
        let outside = secret.to_str().unwrap();
        for path in [outside, "link", "home/secret.txt", "../home/secret.txt"] {
            let (text, _) = answer(server, "file_read", json!({ "path": path }));
            assert!(!text.contains("key"), "{tier} {path}: {text}");
            // In the full tier it may be written in the private temporary directory, where the path leads too.
            answer(server, "file_write", json!({ "path": path, "content": "x" }));
            let edits = json!([{ "old": "key", "new": "x" }]);
            answer(server, "file_edit", json!({ "path": path, "edits": edits }));
        }
        let patch = format!(
            "*** Begin Patch\n*** Add File: {}/new\n+x\n*** End Patch\n",
            workspace.home().display()
        );
        answer(server, "file_patch", json!({ "patch": patch }));
        assert_eq!(fs::read_to_string(&secret).unwrap(), "key\n");
        assert!(!workspace.home().join("new").exists());
    }
}

#[test]
fn a_protected_file_is_not_changed() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        fs::create_dir_all(workspace.scope().join(".vscode")).unwrap();
        let settings = workspace.scope().join(".vscode/settings.json");
        fs::write(&settings, "{}\n").unwrap();
        let server = &mut open(&workspace, tier);
        answer(
            server,
            "file_write",
            json!({ "path": ".vscode/settings.json", "content": "{\"x\": 1}\n" }),
        );
        assert_eq!(fs::read_to_string(&settings).unwrap(), "{}\n", "{tier}");
    }
}

#[test]
fn the_tools_can_be_switched_off() {
    let workspace = Workspace::new();
    let mut server = ServerOptions::new(PROGRAM, &workspace)
        .args(["--files", "off"])
        .open(Era::Legacy);
    let names = server.tool_names();
    assert!(names.iter().all(|name| !name.starts_with("file_")), "{names:?}");
}
