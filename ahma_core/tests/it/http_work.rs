//! Work over HTTP: it keeps its session, outlives a request to stop for a while, and is written down from start to end.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::PathBuf,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use test_support::{Client, HttpServer, Roots, Workspace, children, wait_for};

use crate::{calls::start, history::awaited, session::options};

/// A listening server with an audit trail.
struct Audited {
    workspace: Workspace,
    server: HttpServer,
    trail: PathBuf,
}

fn audited(flags: &[&str]) -> Audited {
    let workspace = Workspace::new();
    let trail = workspace.home().join("audit.jsonl");
    let server = HttpServer::start(
        &options(&workspace)
            .args(["--mode", "http", "--http-port", "0", "--metrics", "--audit-file"])
            .args([&trail])
            .args(flags),
    );
    Audited {
        workspace,
        server,
        trail,
    }
}

impl Audited {
    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.trail).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// All lines of this kind so far.
    fn lines_of(&self, event: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["event"] == event);
        lines
    }

    /// Waits for a line of this kind.
    #[track_caller]
    fn line(&self, event: &str) -> Value {
        wait_for(event, || self.lines_of(event).into_iter().next())
    }

    fn go(&self) {
        fs::write(self.workspace.scope().join("go"), "").unwrap();
    }

    /// Status line, headers and body of an answer.
    fn get(&self, path: &str) -> String {
        let mut connection = self.server.connect();
        let address = self.server.address();
        write!(connection, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// Starts a command that does not end, and waits for what it prints.
#[track_caller]
fn start_and_print(client: &mut Client) -> String {
    let id = start(client, "echo printed; sleep 1000");
    wait_for("what it prints", || {
        let rows = client.tool("status", json!({"operation_ids": [id]}));
        (rows["structuredContent"]["operations"][0]["output_lines"] == 1).then_some(())
    });
    id
}

/// Checks that the client's next session gets the operation as cancelled, with what it had printed.
#[track_caller]
fn check_cancelled(next: &mut Client, id: &str) {
    let report = awaited(next, id);
    assert_eq!(
        (&report["status"], &report["output"]),
        (&json!("cancelled"), &json!("printed\n")),
        "{report}"
    );
}

const UNTIL_GO: &str = "echo begun; until test -e go; do sleep 0.02; done; echo done";

#[test]
fn a_session_with_a_running_operation_is_not_idle() {
    for isolation in [
        &["--session-idle", "2s"][..],
        &["--session-idle", "2s", "--session-isolation"],
    ] {
        let test = audited(isolation);
        let mut client = test.server.unheard_session();
        let id = start(&mut client, UNTIL_GO);
        // Another session comes and goes meanwhile, so the time is long enough for this one to go, too.
        let other = test.server.unheard_session();
        let ended = test.line("session_ended");
        drop(other);
        let opened = test.lines_of("session_opened");
        assert_eq!(ended["session"], opened[1]["session"], "{isolation:?}");
        assert!(ended["outcome"].to_string().contains("idle"), "{ended}");
        test.go();
        let line = test.line("operation_ended");
        assert_eq!(
            (&line["operation"], &line["status"]),
            (&json!(id), &json!("completed")),
            "{line}"
        );
        wait_for("the session to end once nothing runs", || {
            (test.lines_of("session_ended").len() == 2).then_some(())
        });
        let report = awaited(&mut test.server.unheard_session(), &id);
        assert_eq!(report["output"], "begun\ndone\n", "{isolation:?}: {report}");
    }
}

#[test]
fn a_lost_stream_of_http_sse_stops_nothing() {
    for isolation in [&[][..], &["--session-isolation"]] {
        let test = audited(isolation);
        let mut client = test.server.sse(Roots::None);
        let id = start(&mut client, UNTIL_GO);
        drop(client);
        // This one comes and goes later, and has nothing to wait for.
        drop(test.server.sse(Roots::None));
        let ended = test.line("session_ended");
        assert_eq!(ended["outcome"], "the client closed its event stream", "{ended}");
        let opened = test.line("session_opened");
        assert_ne!(ended["session"], opened["session"], "{isolation:?}");
        let mut next = test.server.sse(Roots::None);
        let status = next.tool("status", json!({"operation_ids": [id]}));
        let status = &status["structuredContent"]["operations"][0]["status"];
        assert_eq!(status, "running", "{isolation:?}");
        test.go();
        let report = awaited(&mut next, &id);
        assert_eq!(
            (&report["status"], &report["output"]),
            (&json!("completed"), &json!("begun\ndone\n")),
            "{isolation:?}: {report}"
        );
        wait_for("the session to end with its operation", || {
            let mut ended = test.lines_of("session_ended").into_iter();
            ended.find(|line| line["session"] == opened["session"])
        });
    }
}

#[test]
fn every_operation_is_written_down_with_what_it_used() {
    let test = audited(&[]);
    test.line("server_started");
    for mut client in [test.server.session(Roots::None), test.server.sessionless()] {
        client.tool(
            "sandboxed_shell",
            json!({"command": "echo hello; exit 3", "execution_mode": "synchronous"}),
        );
    }
    let both = wait_for("both operations", || {
        Some(test.lines_of("operation_ended")).filter(|ended| ended.len() == 2)
    });
    let started = test.lines_of("operation_started");
    for (ended, started) in both.iter().zip(&started) {
        assert_eq!(ended["operation"], started["operation"]);
        assert_eq!(
            json!([
                ended["tool"],
                ended["status"],
                ended["exit_code"],
                ended["output_bytes"],
                ended["principal"]
            ]),
            json!(["sandboxed_shell", "failed", 3, 6, "anonymous"]),
            "{ended}"
        );
        for used in ["duration_ms", "cpu_ms", "max_rss_bytes"] {
            assert!(ended[used].is_u64(), "{used}: {ended}");
        }
        assert_eq!(ended["findings"]["critical"], 0, "{ended}");
    }
    assert!(
        both[0]["session"].is_string() && both[1]["session"].is_null(),
        "{both:?}"
    );
    let opened = test.line("session_opened");
    assert!(
        opened["address"].as_str().unwrap().starts_with("127.0.0.1:"),
        "{opened}"
    );
    let metrics = test.get("/metrics");
    let counted = r#"ahma_operations_total{tool="sandboxed_shell",status="failed",principal="anonymous"} 2"#;
    for line in [
        counted,
        "ahma_operation_duration_seconds_count 2",
        r#"ahma_operations{state="running"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn a_backend_that_dies_interrupts_what_it_ran() {
    let test = audited(&["--session-isolation"]);
    let mut client = test.server.session(Roots::None);
    let id = start(&mut client, "sleep 1000");
    test.line("operation_started");
    let mut server = test;
    let listener = server.server.process().pid();
    let backend = children(listener)[0];
    kill_process(Pid::from_raw(backend).unwrap(), Signal::KILL).unwrap();
    let died = server.line("backend_died");
    assert_eq!(
        (&died["pid"], &died["outcome"]),
        (&json!(backend), &json!("signal 9")),
        "{died}"
    );
    assert!(died["session"].is_string(), "{died}");
    let ended = server.line("operation_ended");
    assert_eq!(
        (&ended["operation"], &ended["status"]),
        (&json!(id), &json!("interrupted")),
        "{ended}"
    );
}

#[test]
fn a_session_that_is_ended_cancels_what_it_runs() {
    for isolation in [&[][..], &["--session-isolation"]] {
        let test = audited(isolation);
        let mut client = test.server.session(Roots::None);
        start_and_print(&mut client);
        drop(client);
        let ended = test.line("operation_ended");
        assert_eq!(
            (&ended["status"], &ended["reason"]),
            (&json!("cancelled"), &json!("the client ended the session")),
            "{isolation:?}: {ended}"
        );
        let id = ended["operation"].as_str().unwrap();
        check_cancelled(&mut test.server.session(Roots::None), id);
    }
}

#[test]
fn a_change_of_roots_cancels_what_runs_and_keeps_what_it_printed() {
    let test = audited(&["--session-isolation"]);
    let scope = test.workspace.scope();
    let mut client = test.server.session(Roots::One(&scope));
    let id = start_and_print(&mut client);
    client.notify("notifications/roots/list_changed", json!({}));
    assert_eq!(test.line("operation_ended")["status"], "cancelled");
    check_cancelled(&mut test.server.session(Roots::One(&scope)), &id);
}

#[test]
fn a_server_that_is_told_to_end_takes_no_new_work_and_lets_the_rest_finish() {
    for isolation in [
        &["--drain", "60s"][..],
        &["--drain", "60s", "--session-isolation"],
    ] {
        let mut test = audited(isolation);
        let mut client = test.server.session(Roots::None);
        let id = start(&mut client, UNTIL_GO);
        let waiting = client.request(
            "tools/call",
            json!({"name": "await", "arguments": {"operation_ids": [id]}}),
        );
        wait_for("the call to be open", || {
            test.get("/metrics").contains("ahma_open_calls 1").then_some(())
        });
        test.server.process().signal(Signal::TERM);
        wait_for("the server to leave", || {
            test.get("/healthz").contains("draining").then_some(())
        });
        let refused = test.get("/mcp");
        assert!(
            refused.starts_with("HTTP/1.0 503") && refused.contains("retry-after:"),
            "{refused}"
        );
        test.go();
        let answer = client.answer(waiting);
        assert!(
            answer["result"].to_string().contains("done"),
            "{isolation:?}: {answer}"
        );
        assert!(test.server.process().wait().success());
        assert_eq!(test.line("operation_ended")["status"], "completed");
        test.line("server_stopped");
    }
}

#[test]
fn what_has_not_finished_in_time_is_interrupted_and_told_with_what_it_printed() {
    for flags in [
        &["--drain", "200ms"][..],
        &["--drain", "200ms", "--session-isolation"],
    ] {
        let mut test = audited(flags);
        let mut client = test.server.session(Roots::None);
        let id = start_and_print(&mut client);
        let waiting = client.request(
            "tools/call",
            json!({"name": "await", "arguments": {"operation_ids": [id]}}),
        );
        wait_for("the call to be open", || {
            test.get("/metrics").contains("ahma_open_calls 1").then_some(())
        });
        test.server.process().signal(Signal::TERM);
        let answer = client.answer(waiting);
        let told = answer["result"].to_string();
        assert!(
            told.contains("printed") && told.contains("interrupted"),
            "{flags:?}: {answer}"
        );
        assert!(test.server.process().wait().success());
        let ended = test.line("operation_ended");
        assert_eq!(
            (&ended["status"], &ended["reason"]),
            (&json!("interrupted"), &json!("the server is shutting down")),
            "{ended}"
        );
    }
}

#[test]
fn a_second_signal_does_not_wait() {
    let mut test = audited(&["--drain", "1h"]);
    let mut client = test.server.session(Roots::None);
    start(&mut client, "sleep 1000");
    test.server.process().signal(Signal::TERM);
    wait_for("the server to leave", || {
        test.get("/healthz").contains("draining").then_some(())
    });
    test.server.process().signal(Signal::TERM);
    assert!(test.server.process().wait().success());
    assert_eq!(test.line("operation_ended")["status"], "interrupted");
}
