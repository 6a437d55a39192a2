//! A client puts a link in the place of its scope, and its server is started again: it must not follow.

use std::{fs, os::unix::fs::symlink};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use test_support::{HttpServer, Roots, Workspace, children, wait_for};

use crate::session::options;

#[test]
fn a_server_that_is_started_again_does_not_follow_a_link_that_took_the_place_of_its_scope() {
    let workspace = Workspace::new();
    let (project, elsewhere) = (
        workspace.scope().join("project"),
        workspace.scope().join("elsewhere"),
    );
    fs::create_dir(&project).expect("writable");
    fs::create_dir(&elsewhere).expect("writable");
    let listening = options(&workspace).args(["--mode", "http", "--http-port", "0", "--session-isolation"]);
    let mut listening = HttpServer::start(&listening);
    let mut client = listening.session(Roots::One(&project));
    let touch = json!({"name": "sandboxed_shell", "arguments": {"command": "touch here", "execution_mode": "synchronous"}});
    client.call("tools/call", touch.clone());
    assert!(project.join("here").exists());

    fs::rename(&project, workspace.scope().join("moved")).expect("writable");
    symlink(&elsewhere, &project).expect("writable");
    let front = listening.process().pid();
    let servers = children(front);
    for pid in &servers {
        // One that was to answer `initialize` only may have ended by itself.
        let _ = kill_process(Pid::from_raw(*pid).expect("a process"), Signal::KILL);
    }
    wait_for("the end of the server", || {
        children(front)
            .iter()
            .all(|pid| !servers.contains(pid))
            .then_some(())
    });
    let answer = client.call("tools/call", touch);
    assert!(answer.get("error").is_some(), "{answer}");
    assert!(!elsewhere.join("here").exists(), "a command ran elsewhere");
}
