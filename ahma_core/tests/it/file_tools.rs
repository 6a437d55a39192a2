//! The file tools through a real server: confined by the kernel, all or nothing, short in what they say.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace, skip};

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

/// A server for each tier, as the user of the test and, if that is root, as an ordinary one. `launcher` comes before the
/// program.
fn for_every_user(launcher: &[&str], check: impl Fn(&Workspace, &mut Server, &str)) {
    let is_root = rustix::process::getuid().is_root();
    for tier in ["full", "core"] {
        for user in [
            &[][..],
            &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        ] {
            if !user.is_empty() && !is_root {
                continue;
            }
            let workspace = Workspace::new();
            let root = workspace.scope().parent().unwrap().to_owned();
            let program = root.join("ahma_mcp");
            if fs::hard_link(PROGRAM, &program).is_err() {
                fs::copy(PROGRAM, &program).unwrap();
            }
            if !user.is_empty() {
                for path in [root.clone(), workspace.scope(), workspace.home()] {
                    std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
                }
            }
            let words = [
                launcher,
                user,
                &[program.to_str().unwrap(), "--sandbox-tier", tier],
            ]
            .concat();
            let mut server = ServerOptions::bare("/usr/bin/env", workspace.scope())
                .args(words)
                .env("HOME", workspace.home())
                .env("PATH", "/usr/bin:/bin")
                .open(Era::Legacy);
            check(&workspace, &mut server, &format!("{tier} {user:?}"));
        }
    }
}

fn edit(server: &mut Server, path: &str, old: &str, new: &str) -> (String, bool) {
    answer(
        server,
        "file_edit",
        json!({ "path": path, "edits": [{ "old": old, "new": new }] }),
    )
}

#[test]
fn an_edit_keeps_what_it_does_not_change() {
    for_every_user(&["env"], |_, server, who| {
        for (name, before, after) in [
            ("windows", &b"one\r\ntwo\r\n"[..], &b"one\r\n2\r\n3\r\n"[..]),
            ("wide", b"\xff\xfet\0w\0o\0\n\0", b"\xff\xfe2\0\n\x003\0\n\0"),
            ("latin", b"\xe9 two\n", b"\xe9 2\n3\n"),
        ] {
            let hex: String = before.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            let make = format!("printf '{hex}' > {name}; chmod 640 {name}; ln -sf {name} {name}.link");
            answer(
                server,
                "sandboxed_shell",
                json!({ "command": make, "execution_mode": "synchronous" }),
            );
            let (text, failed) = edit(server, &format!("{name}.link"), "two", "2\n3");
            assert!(!failed, "{who} {name}: {text}");
            let look =
                format!("od -An -tx1 -v {name} | tr -d ' \\n'; stat -c ' %a' {name}; readlink {name}.link");
            let (text, _) = answer(
                server,
                "sandboxed_shell",
                json!({ "command": look, "execution_mode": "synchronous" }),
            );
            let hex: String = after.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(
                text.contains(&format!("{hex} 640\n{name}\n")),
                "{who} {name}: {text}"
            );
        }
    });
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    for_every_user(&["env"], |workspace, server, who| {
        let make = "echo old > fixed; chmod 444 fixed; mkdir shut; echo old > shut/inner; chmod 555 shut";
        answer(
            server,
            "sandboxed_shell",
            json!({ "command": make, "execution_mode": "synchronous" }),
        );
        for path in ["fixed", "shut/inner"] {
            let (text, failed) = edit(server, path, "old", "new");
            assert!(
                failed && text.contains("Permission denied"),
                "{who} {path}: {text}"
            );
            assert_eq!(fs::read_to_string(workspace.scope().join(path)).unwrap(), "old\n");
        }
    });
}

/// A disk of one MiB, which something else fills.
#[test]
fn on_a_full_disk_nothing_is_changed_by_half() {
    if !rustix::process::getuid().is_root() {
        skip("only root can mount a small disk");
        return;
    }
    let mount = "mount -t tmpfs -o size=1m,mode=1777 none \"$PWD\" && cd \"$PWD\" && exec \"$0\" \"$@\"";
    for_every_user(&["unshare", "--mount", "sh", "-c", mount], |_, server, who| {
        let mut shell = |command: &str| {
            let arguments = json!({ "command": command, "execution_mode": "synchronous" });
            answer(server, "sandboxed_shell", arguments).0
        };
        shell("echo old > a; echo old > b; head -c 2M /dev/zero > filler");
        assert!(shell("df . | tail -1").contains("100%"), "{who}");
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n*** Update File: b\n@@\n-old\n+new\n\
                     *** Add File: c\n+new\n*** End Patch\n";
        let long = "x".repeat(10_000);
        let changes = [
            ("file_write", json!({ "path": "a", "content": "new\n" })),
            ("file_write", json!({ "path": "deep/c", "content": long })),
            (
                "file_edit",
                json!({ "path": "a", "edits": [{ "old": "old", "new": long }] }),
            ),
            ("file_patch", json!({ "patch": patch })),
        ];
        for (tool, arguments) in &changes {
            let (text, failed) = answer(server, tool, arguments.clone());
            assert!(
                failed && text.contains("No space left on device"),
                "{who} {tool}: {text}"
            );
            let look = json!({ "command": "cat a b; ls -A", "execution_mode": "synchronous" });
            let (left, _) = answer(server, "sandboxed_shell", look);
            assert_eq!(left, "old\nold\na\nb\nfiller\n", "{who} {tool}");
        }
        let free = json!({ "command": "rm filler", "execution_mode": "synchronous" });
        answer(server, "sandboxed_shell", free);
        let (text, failed) = answer(server, "file_patch", json!({ "patch": patch }));
        assert!(!failed, "{who}: {text}");
    });
}

/// As with a quota: nothing can grow beyond 512 KiB.
#[test]
fn what_does_not_fit_changes_nothing_and_leaves_nothing() {
    for_every_user(
        &["bash", "-c", "ulimit -f 512; exec \"$0\" \"$@\""],
        |workspace, server, who| {
            answer(server, "file_write", json!({ "path": "a", "content": "old\n" }));
            let long = "x".repeat(1 << 20);
            let patch = format!(
                "*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n*** Add File: b\n+{long}\n*** End Patch\n"
            );
            for (tool, arguments) in [
                ("file_write", json!({ "path": "a", "content": long })),
                ("file_write", json!({ "path": "deep/b", "content": long })),
                (
                    "file_edit",
                    json!({ "path": "a", "edits": [{ "old": "old", "new": long }] }),
                ),
                ("file_patch", json!({ "patch": patch })),
            ] {
                let (text, failed) = answer(server, tool, arguments);
                assert!(failed && text.contains("File too large"), "{who} {tool}: {text}");
            }
            assert_eq!(
                fs::read_to_string(workspace.scope().join("a")).unwrap(),
                "old\n",
                "{who}"
            );
            let names: Vec<_> = fs::read_dir(workspace.scope())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            assert_eq!(names, ["a"], "{who}");
        },
    );
}
