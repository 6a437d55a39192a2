//! The way of macOS, run on Linux: commands are started by a program that stands in for `sandbox-exec` and enforces the
//! profile it is given. What `everywhere.rs`, `processes.rs` and the attempts to escape show of it is not repeated here.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace, children, wait_for};

use crate::{
    session::{echo, options},
    terminal::is_alive,
};

/// Flags that have commands started as on macOS.
pub(crate) fn flags() -> [String; 4] {
    let stand_in = test_support::sandbox_exec().display().to_string();
    [
        "--sandbox-tier".to_owned(),
        "seatbelt".to_owned(),
        "--sandbox-exec".to_owned(),
        stand_in,
    ]
}

/// A server whose commands are started as on macOS.
pub(crate) fn confined(options: ServerOptions) -> ServerOptions {
    options.args(flags())
}

/// A program in the place of `sandbox-exec`.
fn program(directory: &Path, name: &str, script: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Message of a server that does not start for want of a sandbox.
fn refusal(mut command: Command, code: i32) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in ["commands could change", "--no-sandbox", "AHMA_NO_SANDBOX=1"] {
        assert!(said.contains(part), "{said}");
    }
    said
}

#[test]
fn without_a_working_sandbox_exec_no_server_starts() {
    let workspace = Workspace::new();
    let nowhere = workspace.home().join("sandbox-exec").display().to_string();
    let failing = |name: &str, script: &str| program(&workspace.home(), name, script);
    for (sandbox_exec, code, reason) in [
        (nowhere, 3, "every macOS has it"),
        (
            failing(
                "strict",
                "echo 'sandbox-exec: <input string>:1:0: unbound variable' >&2; exit 65",
            ),
            4,
            "does not take the sandbox profile",
        ),
        (
            failing(
                "nested",
                "echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71",
            ),
            3,
            "another sandbox is around this program",
        ),
        // Confines nothing, and so has no mark.
        (failing("open", "shift 6; exec \"$@\""), 3, "does not confirm"),
    ] {
        let flags = ["--sandbox-tier", "seatbelt", "--sandbox-exec", &sandbox_exec];
        let said = refusal(options(&workspace).args(flags).command(), code);
        assert!(said.contains(reason), "{reason}: {said}");
    }
}

#[test]
fn inside_another_sandbox_no_server_starts_with_its_own() {
    let workspace = Workspace::new();
    let inside = |server: ServerOptions| {
        let mut command = Command::new(test_support::sandbox_exec());
        command.args(["-p", "(version 1)\n(allow default)"]);
        let server = server.command();
        command.arg(server.get_program()).args(server.get_args());
        command.env_clear().current_dir(workspace.scope());
        command.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    let said = refusal(inside(confined(options(&workspace))), 3);
    assert!(said.contains("another sandbox is around this program"), "{said}");
    let without = options(&workspace).args(["--no-sandbox", "--sandbox-report"]);
    let output = inside(without).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_report_says_what_is_kept_and_by_what() {
    let workspace = Workspace::new();
    let report = confined(options(&workspace)).args(["--sandbox-report", "--network", "loopback"]);
    let output = report.command().output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for line in [
        "tier:      seatbelt\n",
        "network:   loopback of this machine (reaches its local services)\n",
        "  yes  nothing but the scope and what is listed as writable can be written (Seatbelt; tried)\n",
        "  NO   other processes cannot be seen",
        "\n\"yes\" is what macOS is asked for; on this machine only what was tried has been seen\n",
        "  yes  files that act later stay as they are (Seatbelt, guard)\n",
        "which finds daemons too by the mark of their sandbox",
        "  contained  write to a file outside by a hard link\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("Landlock") && !text.contains("ESCAPED"), "{text}");
}

#[test]
fn protected_names_cannot_be_made_in_any_case() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.tools()).unwrap();
    fs::write(workspace.scope().join(".gitmodules"), "").unwrap();
    let mut server = confined(options(&workspace)).open(Era::Legacy);
    for script in [
        "ln .gitmodules another-name",
        "mkdir .vscode",
        "mkdir .VSCode",
        "echo evil > .envrc",
        "echo evil > x && mv x .EnvRC",
        "ln -s x .mcp.json",
        "mv .ahma elsewhere",
        "echo evil > .ahma/tools/evil.json",
    ] {
        let result = shell(&mut server, script);
        assert_eq!(result["isError"], true, "{script}: {result}");
        let said = result.to_string();
        assert!(said.contains("Operation not permitted"), "{script}: {said}");
        // Nothing was there for the guard to remove.
        assert!(!said.contains("quarantine"), "{script}: {said}");
    }
    let hint = shell(&mut server, "echo evil > .envrc")["structuredContent"]["sandbox_hint"].take();
    assert!(hint.as_str().unwrap().contains("is protected"), "{hint}");
    let left: Vec<_> = fs::read_dir(workspace.scope()).unwrap().collect();
    assert_eq!(left.len(), 3, "only .ahma, .gitmodules and x: {left:?}");
}

#[test]
fn refusals_come_with_hints() {
    let workspace = Workspace::new();
    let key = workspace.home().join(".ssh/id_ed25519");
    fs::create_dir_all(key.parent().unwrap()).unwrap();
    fs::write(&key, "a key").unwrap();
    fs::create_dir(workspace.home().join("Documents")).unwrap();
    let nested = "echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71".to_owned();
    let mut server = confined(options(&workspace)).open(Era::Legacy);
    for (script, hint) in [
        (format!("cat {}", key.display()), "which is closed"),
        (
            "touch /usr/local/planted".into(),
            "/usr/local/planted cannot be written",
        ),
        ("cat ~/Documents/plan".into(), "Privacy & Security"),
        (nested, "sandbox of its own"),
    ] {
        let result = shell(&mut server, &script);
        let said = &result["structuredContent"]["sandbox_hint"];
        assert!(said.to_string().contains(hint), "{script}: {result}");
        assert!(!result.to_string().contains("a key"), "{result}");
    }
}

/// Sleeps that have left their session, their parent, and their environment behind.
fn daemons(seconds: &str) -> String {
    format!(
        "setsid -f sleep {seconds}1; (setsid nohup env -i sleep {seconds}2 >/dev/null 2>&1 &); sleep {seconds}3"
    )
}

fn wait_until_they_run(seconds: &str) {
    for number in 1..=3 {
        let seconds = format!("{seconds}{number}");
        wait_for("the daemons to run", || is_alive(&seconds).then_some(()));
    }
}

fn wait_until_they_are_gone(seconds: &str) {
    for number in 1..=3 {
        let seconds = format!("{seconds}{number}");
        wait_for("the daemons to end", || (!is_alive(&seconds)).then_some(()));
    }
}

#[test]
fn daemons_end_with_their_command_their_supervisor_and_their_server() {
    let workspace = Workspace::new();
    let mut server = confined(options(&workspace)).open(Era::Legacy);
    let start = |server: &mut Server, seconds: &str| {
        let arguments = json!({"command": daemons(seconds), "execution_mode": "asynchronous"});
        let started = server.tool("sandboxed_shell", arguments);
        wait_until_they_run(seconds);
        started["structuredContent"]["operation_id"].clone()
    };
    let seconds = |case: u32| format!("8{case}00{}.", std::process::id());

    let id = start(&mut server, &seconds(1));
    server.tool("cancel", json!({"operation_id": id}));
    assert!((1..=3).all(|number| !is_alive(&format!("{}{number}", seconds(1)))));

    let id = start(&mut server, &seconds(2));
    let jails = children(server.pid());
    let supervisors: Vec<i32> = jails.iter().flat_map(|jail| children(*jail)).collect();
    assert!(!supervisors.is_empty());
    for supervisor in supervisors {
        let supervisor = Pid::from_raw(supervisor).unwrap();
        kill_process(supervisor, Signal::KILL).ok();
    }
    wait_until_they_are_gone(&seconds(2));
    let waited = server.tool("await", json!({"operation_ids": [id]}));
    assert!(waited.to_string().contains("interrupted"), "{waited}");

    start(&mut server, &seconds(3));
    server.signal(Signal::KILL);
    wait_until_they_are_gone(&seconds(3));
}

/// As `killall -9` does: nothing of the server is left that could end its commands.
#[test]
fn the_next_server_ends_what_one_left_that_was_killed_with_its_helpers() {
    let workspace = Workspace::new();
    let confined = || confined(options(&workspace)).env("TMPDIR", workspace.temp());
    let mut server = confined().open(Era::Legacy);
    let seconds = format!("88000{}.", std::process::id());
    server.tool(
        "sandboxed_shell",
        json!({"command": daemons(&seconds), "execution_mode": "asynchronous"}),
    );
    wait_until_they_run(&seconds);
    let signal = |processes: &[i32], signal| {
        for process in processes {
            kill_process(Pid::from_raw(*process).unwrap(), signal).unwrap();
        }
    };
    // All stand still first, so that none starts another or acts on the end of one.
    let mut helpers = Vec::new();
    let mut generation = vec![server.pid()];
    for _ in ["the server", "its jails", "their supervisors"] {
        signal(&generation, Signal::STOP);
        helpers.extend(&generation);
        generation = generation.into_iter().flat_map(children).collect();
    }
    signal(&helpers, Signal::KILL);
    // One that waits to be collected has no program any more.
    let is_gone = |process: &i32| fs::read_link(format!("/proc/{process}/exe")).is_err();
    wait_for("all of them to end", || helpers.iter().all(is_gone).then_some(()));
    assert!((1..=2).all(|number| is_alive(&format!("{seconds}{number}"))));
    let base = workspace.temp().join(format!("ahma_mcp-{}", getuid().as_raw()));
    let of_dead: Vec<_> = fs::read_dir(base)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!of_dead.is_empty());

    let _next = confined().open(Era::Legacy);
    wait_until_they_are_gone(&seconds);
    wait_for("its directory to go", || {
        of_dead.iter().all(|path| !path.exists()).then_some(())
    });
}

/// Without a sandbox there is no mark, so only what stays in its session is sure to be found.
#[test]
fn without_a_sandbox_commands_start_and_end_the_same_way() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    let flags = [
        "--no-sandbox".to_owned(),
        "--sandbox-exec".to_owned(),
        flags()[3].clone(),
    ];
    let mut server = options(&workspace).args(flags).open(Era::Legacy);
    let said = server.tool("say", json!({"format": "hi"}));
    assert_eq!(said["structuredContent"]["output"], "hi", "{said}");
    let result = shell(&mut server, "echo one; echo two >&2; exit 3");
    assert_eq!(result["structuredContent"]["exit_code"], 3, "{result}");
    assert_eq!(result["structuredContent"]["output"], "one\ntwo\n", "{result}");
    let seconds = format!("89000{}.", std::process::id());
    let script = format!("sleep {seconds}1 & (sleep {seconds}2 &); sleep {seconds}3");
    let started = server.tool(
        "sandboxed_shell",
        json!({"command": script, "execution_mode": "asynchronous"}),
    );
    wait_until_they_run(&seconds);
    let id = &started["structuredContent"]["operation_id"];
    server.tool("cancel", json!({"operation_id": id}));
    assert!((1..=3).all(|number| !is_alive(&format!("{seconds}{number}"))));
}

/// The script for people with a Mac, as far as it goes here: nothing gets out, and without a sandbox much does.
#[test]
fn the_script_for_a_mac_tells_a_sandbox_from_none() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/check-macos");
    let without = ["--no-sandbox".to_owned()];
    for (flags, code, word, least) in [
        (flags().as_slice(), 0, "contained  ", 25),
        (without.as_slice(), 1, "ESCAPED    ", 15),
    ] {
        let output = Command::new(&script)
            .args(["--server", env!("CARGO_BIN_EXE_ahma_mcp")])
            .args(flags)
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{report}");
        let found = report.lines().filter(|line| line.starts_with(word)).count();
        assert!(found >= least, "{found} of {least}: {report}");
        assert!(report.contains("works      files of the scope"), "{report}");
    }
}

fn shell(server: &mut Server, command: &str) -> Value {
    server.tool(
        "sandboxed_shell",
        json!({"command": command, "execution_mode": "synchronous"}),
    )
}
