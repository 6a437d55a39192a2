//! Clients are greeted before the sandbox is tested, and no call is run before that.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;
use test_support::{Era, Server, Workspace, wait_for};

use crate::session::{echo, options};

/// A server whose shell, and with it the self-test, waits in the sandbox until a file `gate` is there; what that file says
/// is how the shell goes on.
fn waiting_server(workspace: &Workspace, era: Era) -> Server {
    let shell = workspace.scope().join("waiting-shell");
    let text = "#!/bin/bash\nuntil [ -s gate ]; do sleep 0.01; done\n. ./gate\n";
    fs::write(&shell, text).expect("writable");
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).expect("ours");
    workspace.write_tool("say.json", &echo("say"));
    options(workspace)
        .args(["--shell".as_ref(), shell.as_os_str()])
        .open(era)
}

/// All at once: the shell must not read half of it.
fn open_gate(workspace: &Workspace, text: &str) {
    let new = workspace.scope().join("gate.new");
    fs::write(&new, text).expect("writable");
    fs::rename(new, workspace.scope().join("gate")).expect("ours");
}

#[test]
fn tools_are_listed_while_the_sandbox_is_tested_and_calls_wait_for_it() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        let mut server = waiting_server(&workspace, era);
        assert!(server.tool_names().contains(&"say".to_owned()));
        let call = json!({"name": "say", "arguments": {"format": "hello"}});
        let call = server.request("tools/call", call);
        // An answer to a later request shows that the call was not answered before.
        server.tool_names();
        open_gate(&workspace, "exec /bin/bash \"$@\"\n");
        assert_eq!(server.answer(call)["result"]["content"][0]["text"], "hello");
    }
}

#[test]
fn a_sandbox_that_fails_its_test_ends_a_server_that_has_greeted_its_client() {
    let workspace = Workspace::new();
    let mut server = waiting_server(&workspace, Era::Legacy);
    assert!(server.tool_names().contains(&"say".to_owned()));
    let call = json!({"name": "sandboxed_shell", "arguments": {"command": "touch ran"}});
    server.request("tools/call", call);
    open_gate(&workspace, "exit 0\n");
    let complaint = wait_for("the reason", || {
        let said = server.complaints();
        said.contains("hint:").then_some(said)
    });
    assert!(
        complaint.contains("does not run scripts inside the sandbox"),
        "{complaint}"
    );
    assert_eq!(server.wait().code(), Some(3));
    assert!(!workspace.scope().join("ran").exists(), "no call is run");
}
