//! Whatever dies: an operation runs at most once, and its end is told.

use rustix::process::Signal;
use serde_json::json;
use test_support::{Era, wait_for};

use super::pool::{Cluster, counted, ended, printed, start, whole_output};
use crate::terminal::is_alive;

/// A number that no other process sleeps for.
fn unique_seconds(number: u32) -> String {
    format!("81{number:03}.{}", std::process::id())
}

#[test]
fn a_killed_worker_leaves_an_interrupted_operation_with_every_line() {
    let Some(cluster) = Cluster::start() else { return };
    let worker = cluster.worker();
    let (mut one, mut two) = (cluster.front_end(Era::Legacy), cluster.front_end(Era::Modern));
    let id = start(&mut one, &counted("a", "seq 2000; echo last; sleep 1000"));
    printed(&mut two, &id, "last");
    worker.signal(Signal::KILL);
    let _other = cluster.worker();
    let expected: String = (1..=2_000)
        .map(|number| format!("{number}\n"))
        .collect::<String>()
        + "last\n";
    for client in [&mut one, &mut two] {
        let report = ended(client, &id);
        assert_eq!(report["status"], "interrupted", "{report}");
        assert!(report["reason"].as_str().unwrap().contains("is gone"), "{report}");
        assert!(whole_output(client, &id) == expected);
    }
    let mut late = cluster.front_end(Era::Legacy);
    assert_eq!(ended(&mut late, &id)["status"], "interrupted");
    assert!(whole_output(&mut late, &id) == expected);
    assert_eq!(cluster.runs(), ["a"]);
}

#[test]
fn a_tool_that_only_reads_runs_again_on_another_worker_if_asked() {
    let Some(cluster) = Cluster::start() else { return };
    let worker = cluster.worker();
    let mut client = cluster
        .options()
        .args(["--on-worker-loss", "rerun"])
        .open(Era::Legacy);
    let arguments = |command: &str| json!({"command": command, "execution_mode": "asynchronous"});
    let begin = |client: &mut test_support::Client, tool: &str, command: &str| {
        let started = client.tool(tool, arguments(command));
        let id = started["structuredContent"]["operation_id"].as_str();
        id.unwrap_or_else(|| panic!("{started}")).to_owned()
    };
    let wait = "echo begun; until [ -e go ]; do sleep 0.05; done; echo done";
    let reads = begin(&mut client, "readonly_shell", wait);
    let writes = begin(&mut client, "sandboxed_shell", &counted("b", wait));
    for id in [&reads, &writes] {
        printed(&mut client, id, "begun");
    }
    worker.signal(Signal::KILL);
    let _other = cluster.worker();
    std::fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    let report = ended(&mut client, &reads);
    assert_eq!(report["status"], "completed", "{report}");
    let output = whole_output(&mut client, &reads);
    assert_eq!(
        output,
        "begun\n[the worker was lost; attempt 2 begins]\nbegun\ndone\n"
    );
    assert_eq!(ended(&mut client, &writes)["status"], "interrupted");
    let mut late = cluster.front_end(Era::Legacy);
    ended(&mut late, &reads);
    assert_eq!(whole_output(&mut late, &reads), output);
    assert_eq!(cluster.runs(), ["b"]);
}

#[test]
fn a_worker_that_is_stopped_for_longer_than_its_lease_reports_nothing_and_stops_its_command() {
    let Some(cluster) = Cluster::start() else { return };
    let worker = cluster.worker();
    let mut client = cluster.front_end(Era::Legacy);
    let seconds = unique_seconds(1);
    let id = start(
        &mut client,
        &counted("c", &format!("echo begun; sleep {seconds}")),
    );
    printed(&mut client, &id, "begun");
    worker.signal(Signal::STOP);
    let report = ended(&mut client, &id);
    assert_eq!(report["status"], "interrupted", "{report}");
    worker.signal(Signal::CONT);
    wait_for("the command to be stopped", || {
        (!is_alive(&seconds)).then_some(())
    });
    // The worker goes on with new work, and what it says about the old has no effect.
    let next = start(&mut client, &counted("d", "echo again"));
    assert_eq!(ended(&mut client, &next)["status"], "completed");
    let mut late = cluster.front_end(Era::Modern);
    assert_eq!(ended(&mut late, &id)["status"], "interrupted");
    assert_eq!(cluster.runs(), ["c", "d"]);
}

#[test]
fn a_killed_front_end_loses_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let _worker = cluster.worker();
    let mut one = cluster.front_end(Era::Legacy);
    let id = start(
        &mut one,
        &counted("e", "seq 1000; until [ -e go ]; do sleep 0.05; done; echo end"),
    );
    printed(&mut one, &id, "1000");
    one.signal(Signal::KILL);
    one.wait();
    let mut two = cluster.front_end(Era::Legacy);
    std::fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    let report = ended(&mut two, &id);
    assert_eq!(report["status"], "completed", "{report}");
    let expected: String = (1..=1_000)
        .map(|number| format!("{number}\n"))
        .collect::<String>()
        + "end\n";
    assert!(whole_output(&mut two, &id) == expected);
    assert_eq!(cluster.runs(), ["e"]);
}

#[test]
fn a_front_end_that_ends_in_good_order_stops_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let _worker = cluster.worker();
    let mut one = cluster.front_end(Era::Legacy);
    let id = start(
        &mut one,
        "echo begun; until [ -e go ]; do sleep 0.05; done; echo end",
    );
    printed(&mut one, &id, "begun");
    one.close_input();
    one.wait();
    let mut two = cluster.front_end(Era::Legacy);
    std::fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    assert_eq!(ended(&mut two, &id)["status"], "completed");
}

#[test]
fn nats_may_be_killed_and_started_again_while_output_flows() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let _worker = cluster.worker();
    let (mut one, mut two) = (cluster.front_end(Era::Legacy), cluster.front_end(Era::Modern));
    let flow = "for i in $(seq 400); do echo line $i; sleep 0.01; done";
    let id = start(&mut one, &counted("f", flow));
    printed(&mut two, &id, "line 20");
    cluster.nats.restart();
    let expected: String = (1..=400).map(|number| format!("line {number}\n")).collect();
    for client in [&mut one, &mut two] {
        let report = ended(client, &id);
        assert_eq!(report["status"], "completed", "{report}");
        assert!(whole_output(client, &id) == expected);
    }
    assert_eq!(cluster.runs(), ["f"]);
}

#[test]
fn a_worker_that_is_asked_to_end_lets_its_operations_end() {
    let Some(cluster) = Cluster::start() else { return };
    let mut worker = cluster.worker();
    let mut client = cluster.front_end(Era::Legacy);
    let id = start(
        &mut client,
        "echo begun; until [ -e go ]; do sleep 0.05; done; echo end",
    );
    printed(&mut client, &id, "begun");
    worker.signal(Signal::TERM);
    // It takes nothing new, so this waits for another worker.
    wait_for("the worker to drain", || {
        cluster.administer(&["status"]).contains("draining").then_some(())
    });
    let next = start(&mut client, "echo next");
    std::fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    assert_eq!(ended(&mut client, &id)["status"], "completed");
    assert!(worker.wait().success());
    let row = client.tool("status", json!({"operation_ids": [next]}));
    assert_eq!(
        row["structuredContent"]["operations"][0]["status"], "queued",
        "{row}"
    );
    assert_eq!(
        row["structuredContent"]["operations"][0]["queue_position"], 1,
        "{row}"
    );
    let _other = cluster.worker();
    assert_eq!(ended(&mut client, &next)["status"], "completed");
}

#[test]
fn a_worker_that_cannot_wait_any_longer_interrupts_its_operations() {
    let Some(cluster) = Cluster::start() else { return };
    let mut worker = cluster.worker_with(&["--drain-time", "0s"]);
    let mut client = cluster.front_end(Era::Legacy);
    let id = start(&mut client, "echo begun; sleep 1000");
    printed(&mut client, &id, "begun");
    worker.signal(Signal::TERM);
    let report = ended(&mut client, &id);
    assert_eq!(
        (&report["status"], &report["reason"]),
        (&json!("interrupted"), &json!("its worker was stopped")),
        "{report}"
    );
    assert!(worker.wait().success());
}
