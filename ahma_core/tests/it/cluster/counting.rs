//! Two hundred operations that leave a trace of their runs, while everything is killed in turn.

use std::{collections::HashMap, time::Duration};

use rustix::process::Signal;
use serde_json::json;
use test_support::Era;

use super::pool::{Cluster, counted, ended, whole_output};

const OPERATIONS: usize = 200;

#[test]
fn of_two_hundred_operations_none_is_lost_untold_and_none_runs_twice() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let mut workers = vec![cluster.worker(), cluster.worker()];
    let mut fronts = vec![cluster.front_end(Era::Legacy), cluster.front_end(Era::Modern)];
    let mut begun = Vec::new();
    for number in 0..OPERATIONS {
        match number % 50 {
            // A worker dies; another comes.
            10 => {
                workers.remove(0).signal(Signal::KILL);
                workers.push(cluster.worker());
            }
            // A worker stands still for longer than its lease.
            20 => workers[0].signal(Signal::STOP),
            // A front end dies; another comes.
            30 => {
                let mut front = fronts.remove(0);
                front.signal(Signal::KILL);
                front.wait();
                fronts.push(cluster.front_end(Era::Legacy));
            }
            35 => workers[0].signal(Signal::CONT),
            40 => cluster.nats.restart(),
            _ => {}
        }
        let command = counted(
            &format!("n{number}"),
            &format!("echo {number} begins; sleep 0.1; echo {number} ends"),
        );
        let arguments = json!({"command": command, "execution_mode": "asynchronous"});
        let front = fronts.len() - 1 - number % 2;
        let started = fronts[front].tool("sandboxed_shell", arguments);
        // A call that is refused has to leave no trace.
        let id = started["structuredContent"]["operation_id"]
            .as_str()
            .map(str::to_owned);
        begun.push((number, id));
        std::thread::sleep(Duration::from_millis(20));
    }
    workers[0].signal(Signal::CONT);
    let mut reader = cluster.front_end(Era::Legacy);
    let mut ends: HashMap<String, usize> = HashMap::new();
    for (number, id) in &begun {
        let Some(id) = id else { continue };
        let report = ended(&mut reader, id);
        let status = report["status"].as_str().unwrap().to_owned();
        let output = whole_output(&mut reader, id);
        let whole = format!("{number} begins\n{number} ends\n");
        match status.as_str() {
            "completed" => assert_eq!(output, whole, "{report}"),
            "interrupted" => assert!(whole.starts_with(&output), "{report}: {output}"),
            _ => panic!("{report}"),
        }
        *ends.entry(status).or_default() += 1;
    }
    let mut runs: HashMap<String, usize> = HashMap::new();
    for run in cluster.runs() {
        *runs.entry(run).or_default() += 1;
    }
    let twice: Vec<_> = runs.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let completed = ends.get("completed").copied().unwrap_or(0);
    assert!(completed > OPERATIONS / 2, "{ends:?}");
    for (number, id) in begun {
        if id.is_none() {
            assert!(!runs.contains_key(&format!("n{number}")), "a refused call ran");
        }
    }
    eprintln!("ends: {ends:?}");
}
