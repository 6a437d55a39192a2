//! Cost of the history: calls with and without it, by turns, so that both see the same machine; and what a large output
//! leaves in memory and on disk.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    client::{SETTINGS, Session},
    memory::peak_kib,
    table::Table,
};

pub(crate) fn measure(table: &mut Table, server: &Path, short: bool, floor: &[Duration]) {
    let rounds = if short { 30 } else { 1000 };
    for (name, mode, pause, rounds) in [
        (
            "sync call, 10 ms apart",
            "synchronous",
            Duration::from_millis(10),
            rounds / 2,
        ),
        (
            "sync call, back to back",
            "synchronous",
            Duration::ZERO,
            rounds * 2,
        ),
        (
            "call in the background",
            "asynchronous",
            Duration::from_millis(10),
            rounds / 4,
        ),
    ] {
        let [with, without] = by_turns(server, mode, pause, rounds);
        for (history, times) in [("with", with), ("without", without)] {
            let name = format!("{name}, {history} history, by turns");
            table.times(&name, &times, Some(floor));
        }
    }
    large_output(table, server, if short { 16 } else { 1024 });
}

fn session(server: &Path, state: &Path, flags: &[&str]) -> Session {
    let mut command = Command::new(server);
    command.envs(SETTINGS).args(flags).env("XDG_STATE_HOME", state);
    let mut session = Session::of(command);
    session.settle();
    session
}

fn by_turns(server: &Path, mode: &str, pause: Duration, rounds: usize) -> [Vec<Duration>; 2] {
    let state = tempfile::tempdir().unwrap();
    let mut sessions = [&[] as &[&str], &["--no-history"]].map(|flags| session(server, state.path(), flags));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (session, times) in sessions.iter_mut().zip(&mut times) {
            std::thread::sleep(pause);
            let hi = json!({"command": "echo hi", "execution_mode": mode});
            let start = Instant::now();
            let answer = session.call("sandboxed_shell", hi);
            times.push(start.elapsed());
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    }
    times
}

fn large_output(table: &mut Table, server: &Path, mebibytes: u32) {
    for (name, flags) in [
        ("with", &["--sync-wait", "300s"] as &[&str]),
        ("without", &["--sync-wait", "300s", "--no-history"]),
    ] {
        let state = tempfile::tempdir().unwrap();
        let mut session = session(server, state.path(), flags);
        let before = peak_kib(session.process.id());
        let command = format!("yes 'a line of ordinary output from a program' | head -c {mebibytes}M");
        let start = Instant::now();
        session.call(
            "sandboxed_shell",
            json!({"command": command, "execution_mode": "synchronous"}),
        );
        let rate = f64::from(mebibytes) / start.elapsed().as_secs_f64();
        let printed = format!("{mebibytes} MiB of output {name} history");
        table.figure(&printed, rate, "MiB/s");
        while files(state.path())
            .iter()
            .any(|(path, _)| is_to_be_compressed(path))
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        let grown = peak_kib(session.process.id()) - before;
        table.figure(
            &format!("{printed}: peak memory grows by"),
            grown as f64 / 1024.0,
            "MiB",
        );
        let bytes: u64 = files(state.path()).iter().map(|(_, bytes)| bytes).sum();
        table.figure(
            &format!("{printed}: on disk"),
            bytes as f64 / f64::from(1 << 20),
            "MiB",
        );
    }
}

/// Long outputs are in `history/output/SERVER`, without an extension until they are compressed.
fn is_to_be_compressed(path: &Path) -> bool {
    let is_output = path.components().any(|part| part.as_os_str() == "output");
    is_output && path.extension().is_none_or(|extension| extension != "zst")
}

/// All files below a directory, and their sizes.
fn files(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => found.extend(files(&entry.path())),
            Ok(metadata) => found.push((entry.path(), metadata.len())),
            // It has just been removed.
            Err(_) => {}
        }
    }
    found
}
