//! Operations that leave a trace of their runs, while everything is killed in turn.

use std::{collections::HashMap, time::Duration};

use rustix::process::Signal;
use serde_json::json;
use test_support::{Client, Era, HttpServer, Nats, Server, wait_for};

use super::pool::{Cluster, counted, ended, whole_output};

struct Members {
    cluster: Cluster,
    workers: Vec<Server>,
    fronts: Vec<Server>,
    /// Nothing happens to this one.
    watcher: HttpServer,
    /// Names of calls whose front end died before it answered.
    unheard: Vec<String>,
}

#[derive(PartialEq)]
enum Moment {
    AtOnce,
    ItRuns,
}

impl Members {
    fn of(cluster: Cluster) -> Self {
        let options = cluster.options();
        Self {
            workers: vec![cluster.worker(), cluster.worker()],
            fronts: vec![cluster.front_end(Era::Legacy), cluster.front_end(Era::Modern)],
            watcher: HttpServer::start(&options.args(["--mode", "http", "--http-port", "0", "--metrics"])),
            unheard: Vec::new(),
            cluster,
        }
    }

    /// Kills the oldest front end while it has a call; another comes.
    fn kill_front_end_amid_a_call(&mut self, number: usize, when: Moment) {
        let mut front = self.fronts.remove(0);
        let name = format!("unheard-{number}-");
        let arguments =
            json!({"command": counted(&name, "sleep 0.1; echo whole"), "execution_mode": "synchronous"});
        front.request(
            "tools/call",
            json!({"name": "sandboxed_shell", "arguments": arguments}),
        );
        if when == Moment::ItRuns {
            wait_for("the call to run", || {
                self.cluster.runs().contains(&name).then_some(())
            });
        }
        front.signal(Signal::KILL);
        front.wait();
        self.unheard.push(name);
        self.fronts.push(self.cluster.front_end(Era::Legacy));
    }

    /// Looks for a call that was not answered; gives how many operations it became, which have ended.
    fn found_unheard(reader: &mut Client, name: &str) -> usize {
        let listed = reader.tool("status", json!({"text": name}));
        let rows = listed["structuredContent"]["operations"].as_array();
        let rows = rows.unwrap_or_else(|| panic!("{listed}"));
        for row in rows {
            let id = row["operation_id"].as_str().unwrap_or_else(|| panic!("{listed}"));
            let report = ended(reader, id);
            let output = whole_output(reader, id);
            match report["status"].as_str() {
                Some("completed") => assert_eq!(output, "whole\n", "{report}"),
                Some("interrupted") => assert!("whole\n".starts_with(&output), "{report}: {output}"),
                _ => panic!("{report}"),
            }
        }
        rows.len()
    }

    /// Starts so many operations, after `disturb` has done what it does at each. Gives how many ended in which state.
    fn carry_out(&mut self, count: usize, disturb: impl Fn(usize, &mut Self)) -> HashMap<String, usize> {
        let mut begun = Vec::new();
        for number in 0..count {
            disturb(number, self);
            let command = counted(
                &format!("n{number}"),
                &format!("echo {number} begins; sleep 0.1; echo {number} ends"),
            );
            let arguments = json!({"command": command, "execution_mode": "asynchronous"});
            let front = self.fronts.len() - 1 - number % 2;
            let started = self.fronts[front].tool("sandboxed_shell", arguments);
            // A call that is refused has to leave no trace.
            let id = started["structuredContent"]["operation_id"]
                .as_str()
                .map(str::to_owned);
            begun.push((number, id));
            std::thread::sleep(Duration::from_millis(20));
        }
        // A front end that starts while servers choose a leader would give up.
        wait_for("NATS to answer", || {
            self.cluster.tell(&["status"]).0.then_some(())
        });
        let mut reader = self.cluster.front_end(Era::Legacy);
        let mut ends: HashMap<String, usize> = HashMap::new();
        for (number, id) in &begun {
            let Some(id) = id else { continue };
            let report = ended(&mut reader, id);
            let status = report["status"].as_str().unwrap().to_owned();
            let output = whole_output(&mut reader, id);
            let whole = format!("{number} begins\n{number} ends\n");
            match status.as_str() {
                "completed" => assert_eq!(output, whole, "{report}"),
                "interrupted" => {
                    assert!(whole.starts_with(&output), "{report}: {output}");
                    eprintln!("{number}: {}", report["reason"]);
                }
                _ => panic!("{report}"),
            }
            *ends.entry(status).or_default() += 1;
        }
        let unheard: Vec<(&String, usize)> = self
            .unheard
            .iter()
            .map(|name| (name, Self::found_unheard(&mut reader, name)))
            .collect();
        let mut runs: HashMap<String, usize> = HashMap::new();
        for run in self.cluster.runs() {
            *runs.entry(run).or_default() += 1;
        }
        let twice: Vec<_> = runs.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
        for (number, id) in begun {
            if id.is_none() {
                assert!(!runs.contains_key(&format!("n{number}")), "a refused call ran");
            }
        }
        for (name, operations) in unheard {
            let ran = runs.contains_key(name);
            // Killed before it had told anyone, it leaves nothing.
            assert!(
                operations == 1 || (operations == 0 && !ran),
                "{name}: {operations}"
            );
        }
        eprintln!("ends: {ends:?}");
        ends
    }

    /// Waits until front ends have given up all workers but so many.
    fn only_alive(&self, workers: usize) {
        let line = format!("\nahma_cluster_workers {workers}\n");
        wait_for("workers to be given up", || {
            self.watcher.get("/metrics").1.contains(&line).then_some(())
        });
    }
}

/// Calls may be refused while something is dead, and few of the others are interrupted.
#[track_caller]
fn mostly_completed(ends: &HashMap<String, usize>) {
    let completed = ends.get("completed").copied().unwrap_or(0);
    let accepted: usize = ends.values().sum();
    assert!(completed > 0 && completed * 2 > accepted, "{ends:?}");
}

#[test]
fn of_two_hundred_operations_none_is_lost_untold_and_none_runs_twice() {
    let Some(cluster) = Cluster::start() else { return };
    let mut members = Members::of(cluster);
    let ends = members.carry_out(200, |number, members| match (number % 50, number % 100) {
        // A worker dies; another comes.
        (10, _) => {
            members.workers.remove(0).signal(Signal::KILL);
            members.workers.push(members.cluster.worker());
        }
        // A worker stands still for longer than its lease.
        (20, 20) => members.workers[0].signal(Signal::STOP),
        (35, 35) => {
            members.only_alive(1);
            members.workers[0].signal(Signal::CONT);
        }
        // A front end dies; another comes.
        (30, 30) => members.kill_front_end_amid_a_call(number, Moment::AtOnce),
        (30, _) => members.kill_front_end_amid_a_call(number, Moment::ItRuns),
        (40, _) => members.cluster.nats.restart(),
        _ => {}
    });
    mostly_completed(&ends);
}

#[test]
fn any_of_three_nats_servers_may_be_killed() {
    let Some(nats) = Nats::start_three() else { return };
    let mut members = Members::of(Cluster::on(nats, &["--replicas", "3"]));
    let ends = members.carry_out(90, |number, members| match (number % 30, number / 30) {
        (5, server) => members.cluster.nats.kill_one(server),
        (20, server) => members.cluster.nats.restart_one(server),
        _ => {}
    });
    mostly_completed(&ends);
}
