//! Measures what the bridge adds: the same backend bare over its pipe and through the bridge, in one run.
//!
//! `load [--short] [--limits] [--json FILE] BRIDGE BACKEND [ARGS]` starts both programs itself; `scripts/bench` calls it.
//! The client is a bare HTTP/1.1 writer, so that what is measured is the bridge. `--short` makes few requests, to show that
//! it runs. `--limits` adds what open sessions notice while each limit is exceeded, which needs a machine at rest.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for people, which stops at the first problem"
)]

mod http;
mod overload;
mod table;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use http::Server;
use table::Table;

const IN_FLIGHT: usize = 16;

/// Amount of what is measured.
#[derive(Clone, Copy)]
struct Size {
    /// Requests one after the other; four times as many at once.
    calls: usize,
    sessions: usize,
}

const WHOLE: Size = Size {
    calls: 4000,
    // Each is a whole server with its jail, if the backend is ours.
    sessions: 40,
};
const SHORT: Size = Size {
    calls: 64,
    sessions: 4,
};

fn main() {
    let usage = "usage: load [--short] [--limits] [--json FILE] BRIDGE BACKEND [ARGS]";
    let mut words = std::env::args().skip(1).peekable();
    let is_short = words.next_if(|word| word == "--short").is_some();
    let size = if is_short { SHORT } else { WHOLE };
    let with_limits = words.next_if(|word| word == "--limits").is_some();
    let json_file = words
        .next_if(|word| word == "--json")
        .map(|_| words.next().expect(usage));
    let bridge = words.next().expect(usage);
    let backend: Vec<String> = words.collect();
    let name = backend
        .first()
        .expect(usage)
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let mut table = Table::new(format!("bridge to {name}"));

    println!("bridge to {name}");
    table.times("stdio, one at a time", stdio_serial(&backend, size));
    table.rate(
        &format!("stdio, {IN_FLIGHT} in flight"),
        stdio_rate(&backend, size),
        "requests",
    );
    for isolated in [false, true] {
        measure(&mut table, &bridge, &backend, isolated, size);
    }
    if let Some(file) = json_file {
        let rows = serde_json::to_string_pretty(&table.rows).expect("rows are JSON");
        std::fs::write(file, rows).expect("a file that can be written");
    }
    if with_limits {
        overload::run(&bridge, &backend);
    }
}

fn measure(table: &mut Table, bridge: &str, backend: &[String], isolated: bool, size: Size) {
    let mode = if isolated { "isolated" } else { "shared" };
    let server = Server::start(bridge, backend, &flags(isolated));
    for (form, accept) in [
        ("JSON", "application/json"),
        ("SSE", "application/json, text/event-stream"),
    ] {
        let session = server.session();
        let times = serial(&server, &session, accept, size);
        table.times(&format!("{mode}, {form}, one at a time"), times);
        let rate = rate(&server, isolated, accept, size);
        table.rate(
            &format!("{mode}, {form}, {IN_FLIGHT} in flight"),
            rate,
            "requests",
        );
    }
    let (before, all_before) = (server.memory(), server.memory_of_all());
    let (starts, elapsed) = sessions(&server, size);
    let count = size.sessions as u64;
    let grown = server.memory().saturating_sub(before) / count;
    let all_grown = server.memory_of_all().saturating_sub(all_before) / count;
    table.times(&format!("{mode}, session start"), starts);
    table.rate(
        &format!("{mode}, sessions one by one"),
        size.sessions as f64 / elapsed.as_secs_f64(),
        "sessions",
    );
    table.figure(
        &format!("{mode}, memory of a session, bridge alone"),
        grown,
        "KiB",
    );
    table.figure(&format!("{mode}, memory of a session"), all_grown, "KiB");
}

fn flags(isolated: bool) -> Vec<String> {
    let mut flags = vec!["--max-sessions".to_owned(), "1000".to_owned()];
    if isolated {
        flags.push("--session-isolation".to_owned());
    }
    flags
}

/// In milliseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1000.0
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}}}}}}"#
    )
}

struct Pipe {
    process: Child,
}

impl Pipe {
    fn start(backend: &[String]) -> Self {
        let process = Command::new(&backend[0])
            .args(&backend[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("backend");
        Self { process }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn stdio_serial(backend: &[String], size: Size) -> Vec<Duration> {
    let mut pipe = Pipe::start(backend);
    let mut stdin = pipe.process.stdin.take().expect("stdin");
    let mut stdout = BufReader::new(pipe.process.stdout.take().expect("stdout"));
    let mut line = String::new();
    let mut ask = |text: &str| {
        stdin.write_all(format!("{text}\n").as_bytes()).expect("write");
        line.clear();
        stdout.read_line(&mut line).expect("read");
    };
    ask(INITIALIZE);
    (0..size.calls)
        .map(|id| {
            let start = Instant::now();
            ask(&call(id));
            start.elapsed()
        })
        .collect()
}

fn stdio_rate(backend: &[String], size: Size) -> f64 {
    let mut pipe = Pipe::start(backend);
    let mut stdin = pipe.process.stdin.take().expect("stdin");
    let stdout = BufReader::new(pipe.process.stdout.take().expect("stdout"));
    let (answered, answers) = mpsc::channel();
    thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if answered.send(line).is_err() {
                return;
            }
        }
    });
    let mut send = |text: &str| stdin.write_all(format!("{text}\n").as_bytes()).expect("write");
    send(INITIALIZE);
    answers.recv().expect("greeting");
    let start = Instant::now();
    (0..IN_FLIGHT).for_each(|id| send(&call(id)));
    for id in IN_FLIGHT..size.calls * 4 {
        answers.recv().expect("answer");
        send(&call(id));
    }
    (0..IN_FLIGHT).for_each(|_| drop(answers.recv().expect("answer")));
    (size.calls * 4) as f64 / start.elapsed().as_secs_f64()
}

fn serial(server: &Server, session: &str, accept: &str, size: Size) -> Vec<Duration> {
    let mut connection = server.connect();
    (0..size.calls)
        .map(|id| {
            let start = Instant::now();
            connection.post(accept, session, &call(id));
            start.elapsed()
        })
        .collect()
}

fn rate(server: &Server, isolated: bool, accept: &str, size: Size) -> f64 {
    let shared = server.session();
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                let session = if isolated {
                    server.session()
                } else {
                    shared.clone()
                };
                let mut connection = server.connect();
                for id in 0..size.calls * 4 / IN_FLIGHT {
                    connection.post(accept, &session, &call(id));
                }
            });
        }
    });
    (size.calls * 4) as f64 / start.elapsed().as_secs_f64()
}

fn sessions(server: &Server, size: Size) -> (Vec<Duration>, Duration) {
    let begin = Instant::now();
    let times = (0..size.sessions)
        .map(|_| {
            let start = Instant::now();
            let session = server.session();
            server.connect().post(http::JSON, &session, &call(1));
            start.elapsed()
        })
        .collect();
    (times, begin.elapsed())
}
