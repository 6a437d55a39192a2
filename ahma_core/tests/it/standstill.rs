//! Commands that cannot go on, told long before anyone would give up: no terminal, no answer, a lock, no input.

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, wait_for};

use crate::session::options;

const TIERS: [&str; 2] = ["full", "core"];

/// A synchronous call would wait for minutes if nothing were noticed.
fn open(workspace: &Workspace, tier: &str) -> Server {
    options(workspace)
        .with_defaults()
        .args(["--sandbox-tier", tier, "--sync-wait", "600s"])
        .open(Era::Legacy)
}

fn synchronous(server: &mut Server, command: &str) -> String {
    let arguments = json!({ "command": command, "execution_mode": "synchronous" });
    text(&server.tool("sandboxed_shell", arguments))
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_that_waits_for_keys_or_an_answer_is_told() {
    for tier in TIERS {
        let workspace = Workspace::new();
        let server = &mut open(&workspace, tier);
        for (script, expected) in [
            // The editor is started by another program, as git does.
            (
                "cp \"$(command -v sleep)\" vim; sh -c './vim 1000; true'",
                "hint: `vim` works on a terminal, and there is none here",
            ),
            ("printf 'Password: '; sleep 1000", "hint: it asks `Password:`"),
        ] {
            let told = synchronous(server, script);
            assert!(
                told.starts_with("still running after ") && told.contains(expected),
                "{tier} {script}: {told}"
            );
        }
    }
}

#[test]
fn a_lock_is_told_with_the_process_that_has_it() {
    for tier in TIERS {
        let workspace = Workspace::new();
        let server = &mut open(&workspace, tier);
        let holder = json!({ "command": "flock lock sh -c 'touch held; exec sleep 1000'", "execution_mode": "asynchronous" });
        server.tool("sandboxed_shell", holder);
        wait_for("the lock", || {
            workspace.scope().join("held").exists().then_some(())
        });
        let told = synchronous(server, "flock lock echo mine");
        assert!(
            told.contains("hint: it waits for a lock") && told.contains("(`flock`) has"),
            "{tier}: {told}"
        );
    }
}

#[test]
fn a_program_that_read_nothing_is_told() {
    let workspace = Workspace::new();
    let server = &mut open(&workspace, "core");
    let told = synchronous(server, "cat");
    assert!(
        told.contains("hint: `cat` read standard input, which is empty here"),
        "{told}"
    );
    let told = text(&server.tool("sandboxed_shell", json!({ "command": "cat", "stdin": "given\n" })));
    assert_eq!(told, "given\n");
}
