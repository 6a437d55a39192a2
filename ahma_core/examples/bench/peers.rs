//! Other servers, measured in the same run: those that a file names.
//!
//! The file holds a list: `[{"name": "…", "command": ["program", "argument"], "call": {"name": "tool", "arguments": {}}}]`.
//! None is shipped, because what is fair depends on the peer.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{client::Session, processor_time::ProcessGroup, table::Table};

#[derive(Deserialize)]
struct Peer {
    name: String,
    command: Vec<String>,
    /// The parameters of `tools/call`.
    call: Value,
}

pub(crate) fn measure(table: &mut Table, file: &Path, rounds: usize, floor: &[Duration]) {
    let text = std::fs::read_to_string(file).expect("the file of peers");
    let peers: Vec<Peer> = serde_json::from_str(&text).expect("a list of peers");
    for Peer { name, command, call } in peers {
        let [program, arguments @ ..] = command.as_slice() else {
            panic!("{name}: the command is empty");
        };
        let start = || {
            let mut command = Command::new(program);
            command.args(arguments);
            Session::of(command)
        };
        let starts: Vec<Duration> = (0..10)
            .map(|_| {
                let begun = Instant::now();
                start().request("tools/list", json!({}));
                begun.elapsed()
            })
            .collect();
        table.times(&format!("{name}: start to tools/list"), &starts, None);
        let mut session = start();
        let group = ProcessGroup::around(session.process.id());
        let mut ask = || {
            let begun = Instant::now();
            let answer = session.request("tools/call", call.clone());
            assert!(answer.get("error").is_none(), "{name}: {answer}");
            begun.elapsed()
        };
        for _ in 0..5 {
            ask();
        }
        let before = group.as_ref().map(ProcessGroup::used_ms);
        let times: Vec<Duration> = (0..rounds).map(|_| ask()).collect();
        table.times(&format!("{name}: calls back to back"), &times, Some(floor));
        if let (Some(group), Some(before)) = (&group, before) {
            let used = (group.used_ms() - before) / rounds as f64;
            table.figure(&format!("{name}: processor time of a call"), used, "ms");
        }
    }
}
