//! Deaths by `kill -9` in the middle of the work: of a server, of the process of a session, of the listener. Whatever dies,
//! the next session finds every operation by its id, as interrupted, with every line that was written down before; and
//! nothing runs on.
//!
//! `AHMA_TEST_ROUNDS=50` lets each of them die more often.

use std::collections::HashSet;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use test_support::{Client, Era, HttpServer, Roots, ServerOptions, Workspace, children, wait_for};

use crate::{
    calls::start,
    history::{awaited, output, unique_seconds, wait_until_written},
    session::options,
    terminal::is_alive,
};

fn rounds() -> usize {
    let rounds = std::env::var("AHMA_TEST_ROUNDS").ok();
    rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(2)
}

/// Operations that print and never end by themselves.
struct Work {
    /// Printed a little, which is in the row.
    few: String,
    /// Printed more than memory holds, which is in a file.
    many: String,
    /// Prints all the time.
    steady: String,
    /// Lines of it that were written down before the death.
    steady_lines: u64,
    /// On the command line of all processes.
    marker: String,
}

impl Work {
    #[track_caller]
    fn begin(workspace: &Workspace, client: &mut Client) -> Self {
        let marker = unique_seconds();
        let few = format!("for i in 1 2 3; do echo few $i; done; sleep {marker}");
        let steady = format!("sh -c 'i=0; while i=$((i+1)); do echo line $i; sleep 0.01; done' {marker}");
        let few = start(client, &few);
        let many = start(client, &format!("seq 20000; sleep {marker}"));
        let steady = start(client, &steady);
        for (id, last) in [(&few, "few 3"), (&many, "20000"), (&steady, "line 10")] {
            let until =
                json!({"operation_ids": [id], "until_line": format!("^{last}$"), "timeout_seconds": 30});
            let seen = client.tool("await", until);
            assert_eq!(seen["structuredContent"]["reason"], "line_found", "{seen}");
        }
        let status = client.tool("status", json!({"operation_ids": [steady]}));
        let steady_lines = status["structuredContent"]["operations"][0]["output_lines"].as_u64();
        let steady_lines = steady_lines.unwrap_or_else(|| panic!("{status}"));
        for (id, lines) in [(&few, 3), (&many, 20_000), (&steady, steady_lines)] {
            wait_until_written(workspace, id, lines);
        }
        Self {
            few,
            many,
            steady,
            steady_lines,
            marker,
        }
    }

    /// State that a client finds after the death.
    #[track_caller]
    fn check(&self, client: &mut Client, round: usize) {
        for (id, lines) in [
            (&self.few, 3),
            (&self.many, 20_000),
            (&self.steady, self.steady_lines),
        ] {
            let report = awaited(client, id);
            assert_eq!(report["status"], "interrupted", "round {round}: {report}");
            let kept = report["output_lines"].as_u64().unwrap_or_default();
            assert!(
                kept >= lines,
                "round {round}: {lines} lines were printed: {report}"
            );
            let status = client.tool("status", json!({"operation_ids": [id]}));
            let status = &status["structuredContent"]["operations"][0]["status"];
            assert_eq!(status, "interrupted", "round {round}");
        }
        assert_eq!(
            output(client, &self.few),
            "few 1\nfew 2\nfew 3\n",
            "round {round}"
        );
        assert!(
            output(client, &self.many).starts_with("1\n2\n3\n"),
            "round {round}"
        );
        let steady = output(client, &self.steady);
        for (line, number) in steady.lines().zip(1..) {
            assert_eq!(line, format!("line {number}"), "round {round}");
        }
        wait_for("everything to end", || (!is_alive(&self.marker)).then_some(()));
    }
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

fn listening(workspace: &Workspace, flags: &[&str]) -> ServerOptions {
    options(workspace)
        .args(["--mode", "http", "--http-port", "0"])
        .args(flags)
}

#[test]
fn what_a_killed_server_ran_is_interrupted_with_all_it_printed() {
    let workspace = Workspace::new();
    for round in 0..rounds() {
        let mut first = options(&workspace).open(Era::Legacy);
        let work = Work::begin(&workspace, &mut first);
        kill(first.pid());
        first.wait();
        work.check(&mut options(&workspace).open(Era::Legacy), round);
    }
}

#[test]
fn what_the_killed_process_of_a_session_ran_is_interrupted_with_all_it_printed() {
    let workspace = Workspace::new();
    let mut server = HttpServer::start(&listening(&workspace, &["--session-isolation"]));
    let listener = server.process().pid();
    for round in 0..rounds() {
        let before: HashSet<i32> = children(listener).into_iter().collect();
        let mut first = server.session(Roots::None);
        let work = Work::begin(&workspace, &mut first);
        let new: Vec<i32> = children(listener)
            .into_iter()
            .filter(|pid| !before.contains(pid))
            .collect();
        let [backend] = new[..] else {
            panic!("round {round}: the session has these processes: {new:?}");
        };
        kill(backend);
        work.check(&mut server.session(Roots::None), round);
    }
}

#[test]
fn what_ran_when_the_listener_was_killed_is_interrupted_with_all_it_printed() {
    let workspace = Workspace::new();
    for round in 0..rounds() {
        let isolation: &[&str] = if round % 2 == 0 {
            &["--session-isolation"]
        } else {
            &[]
        };
        let mut first = HttpServer::start(&listening(&workspace, isolation));
        let mut client = first.session(Roots::None);
        let work = Work::begin(&workspace, &mut client);
        kill(first.process().pid());
        first.process().wait();
        let second = HttpServer::start(&listening(&workspace, isolation));
        work.check(&mut second.session(Roots::None), round);
    }
}
