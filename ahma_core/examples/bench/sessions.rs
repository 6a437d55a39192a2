//! Isolated sessions over HTTP: their start, their end, what an idle one costs, and many at once.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    Bench,
    client::{Http, Listening},
    memory::{descendants, memories, pss_kib},
    say_hi,
    table::Table,
};

pub(crate) const FLAGS: [&str; 3] = ["--session-isolation", "--max-sessions", "1000"];

/// Sessions that exist at once.
pub(crate) const MANY: usize = 50;

const CALLS_OF_EACH: usize = 5;

pub(crate) fn measure(table: &mut Table, bench: &Bench) {
    let (server, short) = (bench.server.as_path(), bench.short);
    let rounds = if short { 3 } else { 60 };
    let (starts, rate) = one_by_one(server, None, rounds);
    table.times(
        "session start to the list of tools over HTTP, isolated",
        &starts,
        None,
    );
    table.rate("sessions one by one, with their ends", rate, None);
    let tools = shipped_tools();
    let (starts, _) = one_by_one(server, Some(tools.path()), rounds.min(20));
    table.times("the same with all shipped tool files", &starts, None);
    idle(table, bench);
    many(table, server, tools.path(), if short { 4 } else { MANY });
}

/// From the first byte of a client to its list of tools, and how many sessions were opened and ended in a second.
fn one_by_one(server: &Path, tools: Option<&Path>, rounds: usize) -> (Vec<Duration>, f64) {
    let server = Listening::start(server, &FLAGS, tools);
    // The first one asks programs for their versions.
    open(&server).0.end();
    let begun = Instant::now();
    let starts: Vec<Duration> = (0..rounds)
        .map(|_| {
            let (http, elapsed) = open(&server);
            http.end();
            elapsed
        })
        .collect();
    let rate = starts.len() as f64 / begun.elapsed().as_secs_f64();
    (starts, rate)
}

/// Sessions in which one call is made, one after the other.
pub(crate) fn with_a_call(server: &Listening) {
    let (mut http, _) = open(server);
    say_hi(&mut http, 3);
    http.end();
}

pub(crate) fn open(server: &Listening) -> (Http, Duration) {
    let start = Instant::now();
    let mut http = Http::open(&server.address);
    let listed = http.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    assert!(listed.contains("sandboxed_shell"), "{listed}");
    (http, start.elapsed())
}

/// Cost of a session that waits for its client.
fn idle(table: &mut Table, bench: &Bench) {
    let server = Listening::start(&bench.server, &FLAGS, None);
    let without = descendants(server.process_id());
    let (mut http, _) = open(&server);
    let mut count = |name: &str| {
        let below = descendants(server.process_id());
        let own: Vec<u32> = below.into_iter().filter(|pid| !without.contains(pid)).collect();
        table.figure(
            &format!("processes of an idle session, {name}"),
            own.len() as f64,
            "",
        );
        let memory: u64 = memories(&own).into_iter().map(pss_kib).sum();
        table.figure(
            &format!("memory of an idle session, {name}"),
            memory as f64 / 1024.0,
            "MB",
        );
    };
    bench.fall_quiet();
    count("before its first call");
    say_hi(&mut http, 3);
    // Time for what waits for the next call.
    std::thread::sleep(Duration::from_millis(200));
    count("after a call");
    bench.fall_quiet();
    count("some seconds after a call");
    http.end();
}

/// All open at the same time, all calling.
fn many(table: &mut Table, server: &Path, tools: &Path, count: usize) {
    let server = Listening::start(server, &FLAGS, Some(tools));
    let start = Instant::now();
    let sessions: Vec<Http> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let (mut http, _) = open(&server);
                    for number in 0..CALLS_OF_EACH {
                        say_hi(&mut http, number + 3);
                    }
                    http
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let name = format!("{count} sessions with all shipped tool files, {CALLS_OF_EACH} calls each");
    table.figure(&name, start.elapsed().as_secs_f64(), "s");
    let processes = descendants(server.process_id()).len();
    table.figure("processes below the listener after that", processes as f64, "");
    sessions.into_iter().for_each(Http::end);
}

/// The tool files of all packs, in one directory.
fn shipped_tools() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let packs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../packs");
    for pack in std::fs::read_dir(packs).unwrap().flatten() {
        for file in std::fs::read_dir(pack.path()).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|ending| ending == "json") {
                std::fs::copy(file.path(), directory.path().join(file.file_name())).unwrap();
            }
        }
    }
    directory
}
