//! Time of a finding from the tool that prints it to the client that reads it.
//!
//! The tool prints the time as a finding, and the client compares it with its own clock. The reading is too large by
//! the time that the tool needs between looking at the clock and writing.

use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    call,
    client::{Http, Listening, Session},
    sessions,
};

/// A directory with a tool that finds the time, in nanoseconds, again and again.
fn tools() -> tempfile::TempDir {
    let tool = json!({
        "name": "clock", "description": "Finds the time.", "command": "bash", "timeout_seconds": 600,
        "options": [{ "name": "script", "alias": "c", "type": "string", "required": true }],
        "stream": { "rules": [{
            "emit": "finding", "match": "^at (?P<time>\\d+)$",
            "finding": { "severity": "info", "id": "time", "title": "{time}" },
        }] },
    });
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("clock.json"), tool.to_string()).unwrap();
    directory
}

fn clock(samples: usize) -> Value {
    let script = format!(
        "for i in $(seq {samples}); do sleep 0.0$((RANDOM % 90 + 10)); t=$EPOCHREALTIME; echo at ${{t/[.,]/}}000; done; sleep 3"
    );
    let mut call = call(7, "clock", &json!({"script": script}));
    call["params"]["_meta"]["progressToken"] = "p".into();
    call
}

/// The latency of every finding in a progress notification; true if the message is the answer.
fn read(message: &str, latencies: &mut Vec<Duration>) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let Ok(message) = serde_json::from_str::<Value>(message) else {
        return false;
    };
    let findings = message["params"]["_meta"]["ahma/findings"].as_array();
    for finding in findings.into_iter().flatten() {
        let then: u64 = finding["title"].as_str().unwrap().parse().unwrap();
        latencies.push(now.saturating_sub(Duration::from_nanos(then)));
    }
    assert_ne!(message["result"]["isError"], true, "{message}");
    message["id"] == 7
}

pub(crate) fn over_stdio(server: &Path, samples: usize) -> Vec<Duration> {
    let tools = tools();
    let mut session = Session::start(server, &["--sync-wait", "600s"], Some(tools.path()));
    session.settle();
    let mut latencies = Vec::new();
    session.send(&clock(samples));
    while !read(&session.next_line(), &mut latencies) {}
    assert_eq!(latencies.len(), samples);
    latencies
}

pub(crate) fn over_http(server: &Path, samples: usize) -> Vec<Duration> {
    let tools = tools();
    let server = Listening::start(server, &[], Some(tools.path()));
    of_session(&server, samples)
}

/// Isolated sessions that run the tool at the same time.
pub(crate) fn in_sessions(server: &Path, count: usize, samples: usize) -> Vec<Duration> {
    let tools = tools();
    let server = Listening::start(server, &sessions::FLAGS, Some(tools.path()));
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| of_session(&server, samples)))
            .collect();
        sessions
            .into_iter()
            .flat_map(|session| session.join().unwrap())
            .collect()
    })
}

fn of_session(server: &Listening, samples: usize) -> Vec<Duration> {
    let http = Http::open(&server.address);
    let mut latencies = Vec::new();
    http.stream(&clock(samples), |line| {
        line.strip_prefix("data:")
            .is_none_or(|data| !read(data.trim_start(), &mut latencies))
    });
    assert_eq!(latencies.len(), samples);
    latencies
}
