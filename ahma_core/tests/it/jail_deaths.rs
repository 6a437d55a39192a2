//! The jail process dies or hangs while calls are made.

use std::time::Duration;

use serde_json::json;
use test_support::{Era, ServerOptions, Workspace, children, wait_for};

use crate::{
    calls::{shell, start},
    session::{echo, options},
};

#[test]
fn the_death_of_the_jail_interrupts_nothing() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::BOTH[0]);
    let running = start(
        &mut server,
        "while ! test -e go; do sleep 0.05; done; echo survived",
    );
    let killed = *children(server.pid()).first().expect("a helper");
    let pid = rustix::process::Pid::from_raw(killed).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_for("the helper to die", || {
        let stat = std::fs::read_to_string(format!("/proc/{killed}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    // More calls than shells can have been warm, so that some need a new helper.
    for _ in 0..20 {
        let result = shell(&mut server, "echo again", "synchronous");
        assert_eq!(result["structuredContent"]["output"], "again\n");
    }
    assert!(!children(server.pid()).contains(&killed), "a new helper serves");
    std::fs::write(workspace.scope().join("go"), "").unwrap();
    let collected = server.tool("await", json!({"operation_ids": [running]}));
    let operation = &collected["structuredContent"]["operations"][0];
    assert_eq!(
        (&operation["status"], &operation["output"]),
        (&json!("completed"), &json!("survived\n"))
    );
}

#[test]
fn a_new_jail_shows_the_caches_of_toolchains_while_commands_of_the_old_one_use_them() {
    let workspace = Workspace::new();
    let registry = workspace.home().join(".cargo/registry");
    std::fs::create_dir_all(&registry).unwrap();
    let mut server = options(&workspace)
        .args(["--sandbox-tier", "full"])
        .open(Era::BOTH[0]);
    let running = start(
        &mut server,
        "touch ~/.cargo/registry/old; while ! test -e go; do sleep 0.05; done; touch ~/.cargo/registry/late && echo kept",
    );
    let killed = *children(server.pid()).first().expect("a helper");
    let pid = rustix::process::Pid::from_raw(killed).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_for("a call in a new jail", || {
        let result = shell(
            &mut server,
            "touch ~/.cargo/registry/new && echo new",
            "synchronous",
        );
        assert_eq!(result["structuredContent"]["output"], "new\n");
        let helpers = children(server.pid());
        (!helpers.is_empty() && !helpers.contains(&killed)).then_some(())
    });
    let result = shell(
        &mut server,
        "touch ~/.cargo/registry/new && echo new",
        "synchronous",
    );
    assert_eq!(result["structuredContent"]["output"], "new\n");
    std::fs::write(workspace.scope().join("go"), "").unwrap();
    let collected = server.tool("await", json!({"operation_ids": [running]}));
    assert_eq!(
        collected["structuredContent"]["operations"][0]["output"],
        "kept\n"
    );
    assert_eq!(
        std::fs::read_dir(&registry).unwrap().count(),
        0,
        "the host's own stays as it is"
    );
}

#[test]
fn calls_that_a_dying_jail_had_not_started_are_started_by_another() {
    const ROUNDS: u64 = 15;
    const CALLS: usize = 12;
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    for tier in ["full", "core"] {
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Modern);
        // Answered when the sandbox stands.
        server.tool("status", json!({}));
        for round in 0..ROUNDS {
            let say = json!({"name": "say", "arguments": {"format": "said"}});
            let calls: Vec<_> = (0..CALLS)
                .map(|_| server.request("tools/call", say.clone()))
                .collect();
            // At another moment each time; whichever it is, nothing may be lost.
            std::thread::sleep(Duration::from_millis(round));
            for helper in children(server.pid()) {
                let pid = rustix::process::Pid::from_raw(helper).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
            for call in calls {
                let result = server.answer(call)["result"].clone();
                assert_eq!(result["structuredContent"]["output"], "said", "{tier}: {result}");
            }
        }
    }
}

#[test]
fn a_stopped_jail_does_not_keep_the_server_from_stopping() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    // Answered when the sandbox stands.
    server.tool("status", json!({}));
    let helper = *children(server.pid()).first().expect("a helper");
    let pid = rustix::process::Pid::from_raw(helper).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    // More than can have been warm, so that some have to be begun by the helper.
    let impatient = json!({
        "name": "sandboxed_shell",
        "arguments": {"command": "true", "execution_mode": "synchronous", "timeout_seconds": 1},
    });
    let calls: Vec<_> = (0..20)
        .map(|_| server.request("tools/call", impatient.clone()))
        .collect();
    let ends: Vec<_> = calls
        .into_iter()
        .map(|call| server.answer(call)["result"]["structuredContent"]["status"].clone())
        .collect();
    assert!(ends.contains(&json!("timed_out")), "{ends:?}");
    let waiting = start(&mut server, "touch ran");
    let cancelled = server.tool("cancel", json!({"operation_id": waiting}));
    assert_eq!(
        cancelled["structuredContent"]["status"], "cancelled",
        "{cancelled}"
    );
    server.close_input();
    assert!(server.wait().success());
    assert!(!workspace.scope().join("ran").exists());
}

#[test]
fn a_command_of_the_core_tier_dies_with_its_supervisor_also_without_a_jail() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .args(["--sandbox-tier", "core"])
        .open(Era::Modern);
    start(&mut server, "echo $$ > command; exec sleep 1000");
    let command = wait_for("the command", || {
        let written = std::fs::read_to_string(workspace.scope().join("command")).ok()?;
        written.trim().parse::<i32>().ok()
    });
    let stat = std::fs::read_to_string(format!("/proc/{command}/stat")).unwrap();
    let owner = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap();
    let owner = owner.parse::<i32>().unwrap();
    let helper = *children(server.pid()).first().expect("a helper");
    for process in [helper, owner] {
        let pid = rustix::process::Pid::from_raw(process).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    wait_for("the end of the command", || {
        let stat = std::fs::read_to_string(format!("/proc/{command}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

#[test]
fn a_server_whose_parent_ignores_or_blocks_signals_serves() {
    const IGNORE: &str = "import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD})
os.execv(sys.argv[1], sys.argv[1:])";
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let mut server = ServerOptions::new("python3", &workspace)
            .args([
                "-c",
                IGNORE,
                env!("CARGO_BIN_EXE_ahma_mcp"),
                "--sandbox-tier",
                tier,
            ])
            .open(Era::Modern);
        let result = shell(&mut server, "sh -c 'exit 3'; echo $?", "synchronous");
        assert_eq!(result["structuredContent"]["output"], "3\n", "{tier}");
        server.close_input();
        server.wait();
    }
}
