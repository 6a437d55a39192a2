//! The history: what ran outlives its session and its server, for its owner alone, and trouble with it stops nothing.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::{Client, Era, Server, ServerOptions, Workspace, wait_for};

use crate::{calls::start, session::options, terminal::is_alive};

/// The report of one operation by `await`.
pub(crate) fn awaited(client: &mut Client, id: &str) -> Value {
    let answer = client.tool("await", json!({"operation_ids": [id], "timeout_seconds": 30}));
    match &answer["structuredContent"]["operations"][0] {
        Value::Null => panic!("{answer}"),
        report => report.clone(),
    }
}

/// The beginning of what an operation printed.
/// Waits until another process can read so many lines of an operation.
#[track_caller]
pub(crate) fn wait_until_written(workspace: &Workspace, id: &str, lines: u64) {
    let shown = options(workspace).args(["history", "show", id, "--format", "json"]);
    wait_for("lines to be written down", || {
        let shown = shown.command().output().unwrap();
        let row: Value = serde_json::from_slice(&shown.stdout).ok()?;
        (row["output_lines"].as_u64()? >= lines).then_some(())
    });
}

pub(crate) fn output(client: &mut Client, id: &str) -> String {
    let answer = client.tool("output", json!({"operation_id": id, "from_line": 1}));
    let text = answer["structuredContent"]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A number that no other process sleeps for.
pub(crate) fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("7{number:04}.{}", std::process::id())
}

/// Ends a server as a client does.
fn ended(server: &mut Server) {
    server.close_input();
    server.wait();
}

#[test]
fn a_later_session_finds_what_an_earlier_one_ran() {
    let workspace = Workspace::new();
    let mut first = options(&workspace).open(Era::Legacy);
    let short = start(&mut first, "echo a short output");
    let long = start(&mut first, "seq 100000; exit 3");
    for id in [&short, &long] {
        awaited(&mut first, id);
    }
    ended(&mut first);

    let mut second = options(&workspace).open(Era::Legacy);
    let report = awaited(&mut second, &short);
    assert_eq!(report["status"], "completed", "{report}");
    assert_eq!(report["output"], "a short output\n", "{report}");
    let report = awaited(&mut second, &long);
    assert_eq!(
        (&report["status"], &report["exit_code"]),
        (&json!("failed"), &json!(3)),
        "{report}"
    );
    assert_eq!(report["output_lines"], 100_000, "{report}");
    let found = second.tool("output", json!({"operation_id": long, "grep": "^77777$"}));
    assert!(
        found["structuredContent"]["text"]
            .as_str()
            .unwrap()
            .contains("77777"),
        "{found}"
    );
    let page = second.tool(
        "output",
        json!({"operation_id": long, "from_line": 50_000, "max_lines": 2}),
    );
    assert_eq!(page["structuredContent"]["text"], "50000\n50001\n", "{page}");

    let listed = second.tool("status", json!({"since": "1h", "text": "SEQ 100000"}));
    let ids: Vec<_> = listed["structuredContent"]["operations"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(ids.len(), 1, "{listed}");
    assert_eq!(ids[0]["operation_id"], long.as_str());
    let uri = format!("ahma://operations/{short}/output");
    let resource = second.call("resources/read", json!({"uri": uri}));
    assert_eq!(
        resource["result"]["contents"][0]["text"], "a short output\n",
        "{resource}"
    );
}

#[test]
fn another_server_of_the_user_awaits_and_cancels_what_one_runs() {
    let workspace = Workspace::new();
    let mut first = options(&workspace).open(Era::Legacy);
    let mut second = options(&workspace).open(Era::Legacy);
    let ends = start(
        &mut first,
        "echo begun; until [ -e go ]; do sleep 0.02; done; echo done",
    );
    let seconds = unique_seconds();
    let stays = start(&mut first, &format!("echo begun; sleep {seconds}"));
    wait_for("the other to know that it runs", || {
        let seen = second.tool("status", json!({"operation_ids": [ends]}));
        (seen["structuredContent"]["operations"][0]["status"] == "running").then_some(())
    });
    fs::write(workspace.scope().join("go"), "").unwrap();
    let report = awaited(&mut second, &ends);
    assert_eq!(
        (&report["status"], &report["output"]),
        (&json!("completed"), &json!("begun\ndone\n")),
        "{report}"
    );

    let cancelled = second.tool("cancel", json!({"operation_id": stays, "reason": "not needed"}));
    assert_eq!(
        cancelled["structuredContent"]["status"], "cancelled",
        "{cancelled}"
    );
    assert!(!is_alive(&seconds));
    let report = awaited(&mut first, &stays);
    assert_eq!(report["reason"], "not needed", "{report}");
}

#[test]
fn principals_and_scopes_do_not_learn_of_each_other() {
    let (one, two) = (Workspace::new(), Workspace::new());
    let server = |workspace: &Workspace, principal: &str| {
        let options = options(workspace)
            .env("HOME", one.home())
            .env("AHMA_PRINCIPAL", principal);
        options.open(Era::Legacy)
    };
    let mut owner = server(&one, "alice");
    let id = start(&mut owner, "echo a secret of alice");
    awaited(&mut owner, &id);
    for mut other in [server(&one, "bob"), server(&one, ""), server(&two, "alice")] {
        let named = json!({"operation_ids": [id], "timeout_seconds": 0});
        let uri = format!("ahma://operations/{id}");
        for answer in [
            other.tool("await", named),
            other.tool("status", json!({"operation_ids": [id]})),
            other.tool("output", json!({"operation_id": id})),
            other.tool("cancel", json!({"operation_id": id})),
        ] {
            let text = answer.to_string();
            assert!(text.contains(&format!("no operation is called {id}")), "{text}");
        }
        for answer in [
            other.tool("status", json!({"since": "7d"})),
            other.tool("status", json!({"text": "alice"})),
            other.tool("status", json!({"tool": "sandboxed_shell"})),
            other.call("resources/read", json!({"uri": "ahma://operations"})),
        ] {
            assert!(!answer.to_string().contains(&id), "{answer}");
        }
        let read = other.call("resources/read", json!({"uri": uri}));
        assert!(read["error"]["message"].is_string(), "{read}");
    }
    let mut later = server(&one, "alice");
    assert_eq!(awaited(&mut later, &id)["output"], "a secret of alice\n");
}

#[test]
fn without_a_history_nothing_is_written_down() {
    let workspace = Workspace::new();
    let without = || options(&workspace).args(["--no-history"]);
    let mut first = without().open(Era::Legacy);
    let id = start(&mut first, "echo gone");
    awaited(&mut first, &id);
    ended(&mut first);
    let mut second = without().open(Era::Legacy);
    let unknown = second.tool("output", json!({"operation_id": id}));
    assert!(
        unknown.to_string().contains("no operation is called"),
        "{unknown}"
    );
    let refused = second.tool("status", json!({"since": "1d"}));
    assert!(refused.to_string().contains("--no-history"), "{refused}");
    assert!(!workspace.home().join(".local/state/ahma_mcp/history").exists());
}

#[test]
fn secrets_are_not_written_down() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let arguments = json!({
        "command": "true --password hunter2hunter2",
        "env": {"API_KEY": "hunter2hunter2"},
        "stdin": "hunter2hunter2",
    });
    let done = server.tool("sandboxed_shell", arguments);
    assert_eq!(done["isError"], json!(false), "{done}");
    ended(&mut server);
    let history = workspace.home().join(".local/state/ahma_mcp/history");
    // What is not in the file yet is in its log.
    let written = ["history.db", "history.db-wal"].map(|name| fs::read(history.join(name)).unwrap());
    let holds = |text: &str| written.iter().any(|bytes| memchr_in(bytes, text.as_bytes()));
    assert!(holds("API_KEY") && !holds("hunter2hunter2"));
}

#[test]
fn no_command_reaches_the_history() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let id = start(&mut server, "seq 100000");
    awaited(&mut server, &id);
    let state = workspace.home().join(".local/state/ahma_mcp");
    assert!(state.join("history/history.db").exists());
    let command = format!(
        "ls -R {0}; cat {0}/history/history.db; touch {0}/history/x",
        state.display()
    );
    let tried = server.tool(
        "sandboxed_shell",
        json!({"command": command, "execution_mode": "synchronous"}),
    );
    let report = &tried["structuredContent"];
    assert_eq!(report["status"], "failed", "{tried}");
    assert!(!report["output"].as_str().unwrap().contains(&id), "{tried}");
    assert!(!state.join("history/x").exists());
}

#[test]
fn a_scope_around_the_state_directory_has_its_history_elsewhere_out_of_reach() {
    let workspace = Workspace::new();
    let home = workspace.home();
    for tier in ["full", "core"] {
        let temp = workspace.temp().join(tier);
        fs::create_dir(&temp).unwrap();
        let here = options(&workspace).env("TMPDIR", &temp);
        let mut server = here
            .clone()
            .args(["--sandbox-tier", tier, "--sandbox-scope"])
            .args([&home])
            .open(Era::Legacy);
        let id = start(&mut server, "seq 100000");
        awaited(&mut server, &id);
        let reach = format!(
            "ls -R {0}; find {0} | head; touch {0}/x; ls -R .local",
            temp.display()
        );
        let tried = server.tool(
            "sandboxed_shell",
            json!({"command": reach, "execution_mode": "synchronous"}),
        );
        assert!(!tried.to_string().contains("history"), "{tier}: {tried}");
        assert!(!temp.join("x").exists());
        ended(&mut server);
        let user = rustix::process::getuid().as_raw();
        let place = temp.join(format!("ahma_mcp-{user}/state/history/history.db"));
        assert!(place.exists() && !home.join(".local").exists(), "{tier}");
        // From the project, whose own history would be in the usual place.
        let listed = here.clone().args(["history"]).command().output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains(&id), "{tier}: {listed}");
        let removed = here.args(["history", "remove", &id]).command().output().unwrap();
        assert_eq!(
            String::from_utf8(removed.stdout).unwrap(),
            "removed 1 operation\n"
        );
    }
}

#[test]
fn what_run_executes_is_in_the_history() {
    let workspace = Workspace::new();
    let run = |arguments: &[&str]| {
        let options = options(&workspace).env("TMPDIR", workspace.temp());
        let output = options.args(arguments).command().output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        run(&["run", "sandboxed_shell", "seq 50000; exit 3"])
            .lines()
            .count(),
        50_000
    );
    run(&["run", "--no-history", "sandboxed_shell", "echo not written down"]);
    let listed: Value = serde_json::from_str(&run(&["history", "--format", "json"])).unwrap();
    let operations = listed["operations"].as_array().unwrap();
    assert_eq!(operations.len(), 1, "{listed}");
    let operation = &operations[0];
    assert_eq!(
        json!([
            operation["tool"],
            operation["status"],
            operation["exit_code"],
            operation["program"]
        ]),
        json!(["sandboxed_shell", "failed", 3, "ahma_mcp run"]),
        "{operation}"
    );
    assert!(operation["collected_at"].is_string(), "{operation}");
    let id = operation["id"].as_str().unwrap();
    assert_eq!(run(&["history", "output", id, "--tail", "1"]), "50000\n");
    // A client of the same user in the same scope finds it.
    let mut server = options(&workspace).open(Era::Legacy);
    assert_eq!(awaited(&mut server, id)["output_lines"], 50_000);
}

#[test]
fn the_command_shows_exports_and_removes() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &crate::live::scanner());
    let script = "echo 'hole high CVE-2026-1 at port/80: old server; do update'; echo 40 percent; sleep 600";
    fs::write(workspace.scope().join("scan.sh"), script).unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    let started = server.tool(
        "scan",
        json!({"script": "scan.sh", "execution_mode": "asynchronous"}),
    );
    let id = started["structuredContent"]["operation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    wait_for("its output", || {
        output(&mut server, &id).contains("40 percent").then_some(())
    });
    let history = |arguments: &[&str]| {
        let output = options(&workspace)
            .env("TMPDIR", workspace.temp())
            .args(["history"])
            .args(arguments)
            .command()
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    wait_for("it to be listed as running", || {
        let (_, running, _) = history(&["--status", "running", "--format", "json"]);
        let running: Value = serde_json::from_str(&running).unwrap();
        (running["operations"][0]["id"] == id.as_str()).then_some(())
    });
    server.tool("cancel", json!({"operation_id": id, "reason": "enough"}));
    ended(&mut server);

    let (code, listed, _) = history(&[]);
    assert!(
        code == Some(0) && listed.contains(&id) && listed.contains("cancelled"),
        "{listed}"
    );
    let (_, shown, _) = history(&["show", &id]);
    assert!(shown.contains("enough") && shown.contains("percent"), "{shown}");
    let (_, lines, _) = history(&["output", &id, "--grep", "CVE"]);
    assert_eq!(
        lines,
        "1:hole high CVE-2026-1 at port/80: old server; do update\n"
    );
    let (_, all, _) = history(&["output", &id]);
    assert_eq!(
        all,
        "hole high CVE-2026-1 at port/80: old server; do update\n40 percent\n"
    );
    let (_, found, _) = history(&["findings", "--severity", "high", "--since", "1h"]);
    assert!(found.contains(&id) && found.contains("old server"), "{found}");
    let (_, found, _) = history(&["findings", "--severity", "critical"]);
    assert_eq!(found, "no findings\n");
    let to = workspace.home().join("scan.sarif");
    history(&["export", &id, "--format", "sarif", "--to", to.to_str().unwrap()]);
    let log: Value = serde_json::from_slice(&fs::read(&to).unwrap()).unwrap();
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false, "{log}");
    assert_eq!(
        (
            &invocation["properties"]["status"],
            &invocation["properties"]["percent"]
        ),
        (&json!("cancelled"), &json!(40.0)),
        "{log}"
    );
    let (_, junit, _) = history(&["export", &id, "--format", "junit"]);
    assert!(
        junit.contains("errors=\"1\"") && junit.contains(r#"name="percent" value="40""#),
        "{junit}"
    );

    let (_, removed, _) = history(&["remove", &id]);
    assert_eq!(removed, "removed 1 operation\n");
    let (code, _, said) = history(&["show", &id]);
    assert!(
        code == Some(1) && said.contains("no operation is called") && said.contains("hint:"),
        "{said}"
    );
    let (code, _, said) = history(&["remove"]);
    assert!(code == Some(2) && said.contains("hint:"), "{said}");
}

#[test]
fn an_output_or_a_report_is_written_to_a_file_of_the_scope() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let id = start(&mut server, "seq 50000");
    awaited(&mut server, &id);
    let wrote = server.tool("file_write", json!({"path": "out.txt", "from_output": id}));
    assert_eq!(wrote["isError"], false, "{wrote}");
    let written = fs::read_to_string(workspace.scope().join("out.txt")).unwrap();
    assert_eq!(written.lines().count(), 50_000);
    let report = json!({"path": "out.sarif", "from_output": id, "format": "sarif"});
    assert_eq!(server.tool("file_write", report)["isError"], false);
    let log: Value = serde_json::from_slice(&fs::read(workspace.scope().join("out.sarif")).unwrap()).unwrap();
    assert_eq!(log["runs"][0]["invocations"][0]["exitCode"], 0, "{log}");
    let outside = Path::new("/usr/outside.txt");
    let refused = server.tool("file_write", json!({"path": outside, "from_output": id}));
    assert!(
        refused["isError"] == json!(true) && !outside.exists(),
        "{refused}"
    );
    for (arguments, reason) in [
        (
            json!({"from_output": "op_unknown"}),
            "no operation is called op_unknown",
        ),
        (
            json!({"from_output": id, "content": "x"}),
            "`content` cannot be combined",
        ),
        (
            json!({"from_output": id, "format": "xml"}),
            "`format` must be one of",
        ),
        (
            json!({"content": "x", "format": "sarif"}),
            "only with `from_output`",
        ),
        (json!({}), "`content` is required, or `from_output`"),
    ] {
        let mut arguments = arguments;
        arguments["path"] = json!("refused.txt");
        let refused = server.tool("file_write", arguments);
        assert!(refused.to_string().contains(reason), "{reason}: {refused}");
    }
    assert!(!workspace.scope().join("refused.txt").exists());
}

fn memchr_in(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// A server whose state directory is in trouble runs commands, says so, and its long outputs have gaps at worst.
fn runs_in_trouble(options: &ServerOptions) {
    let mut server = options.open(Era::Legacy);
    let done = server.tool(
        "sandboxed_shell",
        json!({"command": "seq 500000", "execution_mode": "synchronous"}),
    );
    let report = &done["structuredContent"];
    assert_eq!(
        (&report["status"], &report["exit_code"]),
        (&json!("completed"), &json!(0)),
        "{done}"
    );
    assert!(report["output"].as_str().unwrap().ends_with("500000\n"), "{done}");
    wait_for("the trouble to be told", || {
        let status = server.tool("status", json!({}));
        status["structuredContent"]["history_trouble"]
            .as_str()
            .map(|_| ())
    });
    let done = server.tool(
        "sandboxed_shell",
        json!({"command": "echo still", "execution_mode": "synchronous"}),
    );
    assert_eq!(done["structuredContent"]["output"], "still\n", "{done}");
    ended(&mut server);
}

/// A file system of its own below a directory; only root can have one.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn on(directory: &Path, mount_options: &str) -> Option<Self> {
        fs::create_dir_all(directory).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", mount_options, "tmpfs"])
            .arg(directory)
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(directory.to_owned()));
        }
        eprintln!("skipped: only root can mount a file system");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_stops_nothing() {
    let workspace = Workspace::new();
    let state = workspace.home().join("state");
    let Some(_mounted) = Mounted::on(&state, "size=256k") else {
        return;
    };
    runs_in_trouble(&options(&workspace).env("XDG_STATE_HOME", &state));
}

#[test]
fn a_state_directory_that_cannot_be_written_is_told_and_stops_nothing() {
    let workspace = Workspace::new();
    let state = workspace.home().join("state");
    let Some(_mounted) = Mounted::on(&state, "ro") else {
        return;
    };
    let options = options(&workspace).env("XDG_STATE_HOME", &state);
    runs_in_trouble(&options);
    // Nor is anything lost that passes through.
    let run = options.args(["run", "sandboxed_shell", "seq 500000"]);
    let output = run.command().output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 500_000);
}

#[test]
fn a_damaged_history_is_moved_aside() {
    let workspace = Workspace::new();
    let history = workspace.home().join(".local/state/ahma_mcp/history");
    fs::create_dir_all(&history).unwrap();
    fs::write(history.join("history.db"), "no database at all".repeat(500)).unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    let id = start(&mut server, "echo new");
    awaited(&mut server, &id);
    ended(&mut server);
    let aside = fs::read_dir(&history).unwrap().flatten();
    let is_aside = |name: std::ffi::OsString| name.to_string_lossy().starts_with("history.db.damaged-");
    assert_eq!(aside.filter(|entry| is_aside(entry.file_name())).count(), 1);
    let mut later = options(&workspace).open(Era::Legacy);
    assert_eq!(awaited(&mut later, &id)["output"], "new\n");
}

#[test]
fn a_task_lives_on_when_its_server_does_not() {
    let workspace = Workspace::new();
    let ask = |server: &mut Server, method: &str, mut params: Value| {
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        server.call(method, params)["result"].clone()
    };
    let mut first = options(&workspace).open(Era::Modern);
    let task = ask(
        &mut first,
        "tools/call",
        json!({"name": "sandboxed_shell", "arguments": {
            "command": "echo begun; sleep 600", "execution_mode": "asynchronous", "timeout_seconds": 5400}}),
    );
    assert!(task["ttlMs"].as_u64().unwrap() >= 5_400_000, "{task}");
    let id = task["_meta"]["ahma/operationId"].as_str().unwrap().to_owned();
    wait_for("its output", || {
        output(&mut first, &id).contains("begun").then_some(())
    });
    wait_until_written(&workspace, &id, 1);
    first.signal(Signal::KILL);
    first.wait();

    let mut second = options(&workspace).open(Era::Modern);
    let seen = ask(&mut second, "tasks/get", json!({"taskId": task["taskId"]}));
    assert_eq!(seen["status"], "completed", "{seen}");
    assert_eq!(
        (&seen["ttlMs"], &seen["createdAt"].is_string()),
        (&task["ttlMs"], &true),
        "{seen}"
    );
    let report = &seen["result"]["structuredContent"];
    assert_eq!(
        (&report["status"], &report["output"]),
        (&json!("interrupted"), &json!("begun\n")),
        "{seen}"
    );
}
