//! `ahma_mcp run`: one tool from the terminal.

use std::{
    fs::{self, Permissions},
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    process::{Command, Output, Stdio},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use serde_json::json;
use test_support::{Workspace, wait_for};

use crate::command_line::assert_ended;
use crate::session::{echo, options};

fn command(workspace: &Workspace, arguments: &[&str]) -> Command {
    options(workspace).args(arguments).command()
}

fn run(workspace: &Workspace, arguments: &[&str]) -> Output {
    command(workspace, arguments).output().expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_exit_code_is_that_of_the_command_or_says_why_there_is_none() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    let mut missing = echo("missing");
    missing["command"] = "no-such-program-here".into();
    missing["install_instructions"] = "take it from the shelf".into();
    workspace.write_tool("missing.json", &missing);
    let mut unready = echo("unready");
    unready["command"] = "sh -c false".into();
    unready["availability_check"] = "sh -c 'echo no module; exit 1'".into();
    unready["install_instructions"] = "fetch the module".into();
    workspace.write_tool("unready.json", &unready);
    workspace.write_tool("greet.json", &echo("greet_all"));
    fs::write(workspace.tools().join("broken.json"), r#"{"comand": "x"}"#).expect("writable");
    for (arguments, code, out, complaint) in [
        (&["say", "%s-", "a", "b c"][..], 0, "a-b c-", ""),
        (
            &["say", "--format=%s", "--words", "--x"],
            2,
            "",
            "unexpected argument '--x'",
        ),
        (
            &["say", "--format=%s", "--words=--x"],
            2,
            "",
            "must not begin with a dash",
        ),
        (
            &["sandboxed_shell", "echo out; echo err >&2; exit 7"],
            7,
            "out\nerr\n",
            "exit code 7",
        ),
        (&["sandboxed_shell", "kill -TERM $$"], 143, "", "SIGTERM"),
        (
            &["sandboxed_shell", "--timeout-seconds", "5", "echo a; sleep 60"],
            124,
            "a\n",
            "timeout",
        ),
        (&["missing", "x"], 127, "", "hint: take it from the shelf"),
        (
            &["unready", "x"],
            1,
            "",
            "exit code 1: no module (inside the sandbox; the program is there: ",
        ),
        (
            &["sandboxed_shell", "ls", "-la"],
            2,
            "",
            "put it in quotes: ahma_mcp run sandboxed_shell 'ls -la'",
        ),
        (&["sya"], 2, "", "did you mean `say`?"),
        (
            &["greet", "all", "--format", "x"],
            2,
            "",
            "did you mean `greet_all`?",
        ),
        (&["--network", "off", "say", "%s", "a"], 0, "a", ""),
        (
            &["say", "%s", "--network", "off"],
            2,
            "",
            "--network is a flag of the server and goes before the tool",
        ),
        (&["--netwrok", "say"], 2, "", "no tool is called `--netwrok`"),
        (&["status"], 2, "", "for the clients of a running server"),
        (&["broken_x"], 2, "", "its file has a mistake: broken.json:1:"),
        (
            &["say", "--format", "x", "--wrods", "y"],
            2,
            "",
            "a similar argument exists: '--words'",
        ),
        (
            &["say", "--working-directory", "/etc"],
            2,
            "",
            "`working_directory`",
        ),
        (&["say", "--working-directory", "/etc"], 2, "", "`format`"),
        (&["say", "--help"], 0, "", ""),
    ] {
        let arguments: Vec<&str> = ["run"].iter().chain(arguments).copied().collect();
        let output = run(&workspace, &arguments);
        assert_ended(&output, &arguments, code, complaint);
        let text = String::from_utf8_lossy(&output.stdout);
        if arguments.contains(&"--help") {
            assert!(
                text.contains("Usage: ahma_mcp run say [OPTIONS] <format> [words]..."),
                "{text}"
            );
        } else if code != 127 {
            assert_eq!(text, out, "{arguments:?}");
        }
    }
}

#[test]
fn output_passes_unchanged_whatever_it_is() {
    let workspace = Workspace::new();
    // Bytes that are no text, more than memory holds, no newline at the end.
    let script = r"printf '\377\376\000x\r'; head -c 3000000 /dev/zero | tr '\0' 'y'";
    let output = run(&workspace, &["run", "sandboxed_shell", script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout[..5], *b"\xff\xfe\x00x\r");
    assert_eq!(output.stdout.len(), 5 + 3_000_000);
    assert!(output.stdout[5..].iter().all(|&byte| byte == b'y'));
}

#[test]
fn findings_and_progress_are_told_on_stderr() {
    let workspace = Workspace::new();
    let mut tool = echo("scan");
    tool["stream"] = json!({ "rules": [
        { "emit": "progress", "match": "^(?P<percent>\\d+)%$", "percent": "{percent}" },
        { "emit": "finding", "match": "^bad: (?P<what>.+)$",
          "finding": { "severity": "high", "id": "x", "title": "{what}", "location": "a.rs:1" } },
    ]});
    workspace.write_tool("scan.json", &tool);
    let output = run(&workspace, &["run", "scan", "30%%\\nbad: the lock\\n"]);
    let complaints = stderr(&output);
    assert!(complaints.contains("progress: 100%"), "{complaints}");
    assert!(
        complaints.contains("finding: high: the lock at a.rs:1"),
        "{complaints}"
    );
    assert_eq!(output.stdout, b"30%\nbad: the lock\n");

    // Only a success is a whole.
    tool["command"] = "sh -c".into();
    workspace.write_tool("scan.json", &tool);
    let complaints = stderr(&run(&workspace, &["run", "scan", "echo 30%; false"]));
    assert!(
        complaints.contains("progress: 30%") && !complaints.contains("100%"),
        "{complaints}"
    );
}

#[test]
fn a_bar_that_a_tool_file_asks_for_leaves_only_its_last_state() {
    let workspace = Workspace::new();
    let mut tool = echo("build");
    tool["stream"] = json!({ "rules": [
        { "emit": "progress", "match": "(?P<percent>\\d+)%", "percent": "{percent}" },
    ]});
    workspace.write_tool("build.json", &tool);
    let frames = "start\\n10%%   \\r70%%   \\rdone\\n";
    let output = run(&workspace, &["run", "build", frames]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "start\ndone\n",
        "{}",
        stderr(&output)
    );
    let (mut screen, side) = open_terminal();
    let mut child = command(&workspace, &["run", "build", frames])
        .env("TERM", "xterm")
        .stdout(side.try_clone().expect("another"))
        .stderr(side)
        .spawn()
        .expect("it starts");
    let shown = read_to_end(&mut screen);
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{shown}");
    assert!(shown.contains("start\r\ndone\r\n"), "{shown:?}");
    assert!(!shown.contains("10%   "), "{shown:?}");
}

/// True if a process with that word on its command line is alive.
pub(crate) fn is_alive(word: &str) -> bool {
    fs::read_dir("/proc").expect("readable").flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0)
            .any(|argument| argument == word.as_bytes())
    })
}

#[test]
fn an_interrupt_stops_the_command_and_all_it_started() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let workspace = Workspace::new();
        // Two numbers that no other process sleeps for.
        let seconds = [1, 2].map(|place| format!("{}.{}{place}", 90_000 + code, std::process::id()));
        let script = format!(
            "setsid sleep {} & echo started; exec sleep {}",
            seconds[0], seconds[1]
        );
        let mut child = command(&workspace, &["run", "sandboxed_shell", &script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut started = [0; 8];
        child
            .stdout
            .as_mut()
            .expect("piped")
            .read_exact(&mut started)
            .expect("it says so");
        wait_for("both to run", || {
            seconds.iter().all(|word| is_alive(word)).then_some(())
        });
        kill_process(Pid::from_child(&child), signal).expect("it lives");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        assert!(!seconds.iter().any(|word| is_alive(word)), "something is left");
    }
}

/// The check of a tool may take ten seconds, and a shell that does not work for ever.
#[test]
fn an_interrupt_ends_what_comes_before_and_after_a_command() {
    let workspace = Workspace::new();
    // Two numbers that no other process sleeps for.
    let [check, shell] = [92_000, 93_000].map(|number| format!("{number}.{}", std::process::id()));
    let mut slow = echo("slow");
    slow["command"] = "sh -c false".into();
    slow["availability_check"] = format!("sleep {check}").into();
    workspace.write_tool("slow.json", &slow);
    let hanging = workspace.scope().join("hanging");
    fs::write(&hanging, format!("#!/bin/sh\nexec sleep {shell}\n")).expect("writable");
    fs::set_permissions(&hanging, Permissions::from_mode(0o755)).expect("ours");
    let hanging = hanging.to_str().expect("plain");
    for (arguments, seconds) in [
        (&["--mode", "list-tools"][..], &check),
        (&["run", "slow", "x"], &check),
        (&["--shell", hanging, "run", "slow", "x"], &shell),
        (&["--shell", hanging, "--sandbox-report"], &shell),
    ] {
        let mut child = command(&workspace, arguments).spawn().expect("it starts");
        wait_for("something to sleep", || is_alive(seconds).then_some(()));
        kill_process(Pid::from_child(&child), Signal::INT).expect("it lives");
        let status = wait_for("the end", || child.try_wait().expect("our child"));
        assert_eq!(status.code(), Some(130), "{arguments:?}");
        assert!(!is_alive(seconds), "{arguments:?}: something is left");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_command() {
    let workspace = Workspace::new();
    let mut child = command(&workspace, &["run", "sandboxed_shell", "yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut first = [0; 2];
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut first).expect("it prints");
    drop(stdout);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_terminal_shows_a_bar_that_is_gone_in_the_end() {
    let workspace = Workspace::new();
    let mut tool = echo("slow");
    tool["command"] = "bash -c".into();
    tool["stream"] = json!({ "rules": [
        { "emit": "progress", "match": "^(?P<percent>\\d+)%$", "percent": "{percent}" },
    ]});
    workspace.write_tool("slow.json", &tool);
    let (mut screen, side) = open_terminal();
    let mut child = command(
        &workspace,
        &[
            "run",
            "slow",
            "echo 40%; for _ in {1..600}; do [ -e seen ] && exit; sleep 0.1; done; false",
        ],
    )
    .env("TERM", "xterm")
    .env("NO_COLOR", "1")
    .stdout(Stdio::null())
    .stderr(side)
    .spawn()
    .expect("it starts");
    let bar = "slow [########............] 40%";
    let mut shown = read_until(&mut screen, |shown| shown.contains(bar));
    fs::write(workspace.scope().join("seen"), "").expect("writable");
    shown += &read_to_end(&mut screen);
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{shown}");
    assert!(shown.contains(bar), "{shown:?}");
    let after = shown.rsplit("\u{1b}[2K").next().expect("always one");
    assert!(after.starts_with("slow completed in "), "{shown:?}");
}

#[test]
fn init_asks_on_a_terminal_and_takes_no_answer_for_no() {
    let workspace = Workspace::new();
    let converse = |arguments: &[&str], answer: &str| {
        let (mut screen, side) = open_terminal();
        let mut child = command(&workspace, arguments)
            .stdin(side.try_clone().expect("another"))
            .stdout(Stdio::null())
            .stderr(side)
            .spawn()
            .expect("it starts");
        screen.write_all(answer.as_bytes()).expect("it reads");
        let shown = read_to_end(&mut screen);
        (child.wait().expect("it ends").code(), shown)
    };
    let (code, shown) = converse(&["init"], "3\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("3 Claude Code"), "{shown}");
    let file = workspace.scope().join(".mcp.json");
    assert!(
        fs::read_to_string(&file)
            .expect("it was written")
            .contains("Ahama")
    );

    fs::write(&file, r#"{"mcpServers": {"Ahama": {"command": "other"}}}"#).expect("writable");
    for (answer, kept) in [("\n", true), ("y\n", false)] {
        let (ended, shown) = converse(&["init", "--client", "claude"], answer);
        assert_eq!(ended, Some(0), "{shown}");
        let text = fs::read_to_string(&file).expect("readable");
        assert_eq!(text.contains("other"), kept, "{answer:?}: {text}");
    }
}

#[test]
fn who_starts_the_server_by_hand_is_told_what_it_waits_for() {
    let workspace = Workspace::new();
    let (mut person, side) = open_terminal();
    // Ctrl-D is there already: the server ends when it has said what it has to say.
    person.write_all(b"\x04").expect("typed");
    let output = command(&workspace, &[]).stdin(side).output().expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    assert!(
        stderr(&output).starts_with("serving MCP on stdin and stdout"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_server_that_is_interrupted_leaves_the_prompt_a_line_of_its_own() {
    let workspace = Workspace::new();
    let (mut screen, side) = open_terminal();
    let mut child = command(&workspace, &[])
        .stdin(side.try_clone().expect("another"))
        .stdout(Stdio::null())
        .stderr(side)
        .spawn()
        .expect("it starts");
    let mut shown = read_until(&mut screen, |shown| shown.contains("shows other commands\r\n"));
    kill_process(Pid::from_child(&child), Signal::INT).expect("it lives");
    shown += &read_to_end(&mut screen);
    assert!(child.wait().expect("it ends").success(), "{shown}");
    assert!(shown.ends_with("shows other commands\r\n\r\n"), "{shown:?}");
}

/// A terminal: what a person sees of it, and the side that a program is given.
pub(crate) fn open_terminal() -> (fs::File, OwnedFd) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("granted");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("a name");
    let side: OwnedFd = fs::File::options()
        .read(true)
        .write(true)
        .open(name.to_str().expect("plain"))
        .expect("it opens")
        .into();
    (fs::File::from(terminal), side)
}

pub(crate) fn read_to_end(screen: &mut fs::File) -> String {
    read_until(screen, |_| false)
}

/// The text shown until it is enough, or to the end.
fn read_until(screen: &mut fs::File, is_enough: impl Fn(&str) -> bool) -> String {
    let mut shown = String::new();
    let mut chunk = [0; 4096];
    // The end of a terminal whose other side is closed is an error.
    while !is_enough(&shown)
        && let Ok(length @ 1..) = screen.read(&mut chunk)
    {
        shown.push_str(&String::from_utf8_lossy(&chunk[..length]));
    }
    shown
}
