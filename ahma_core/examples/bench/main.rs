//! The benchmark: what a call costs, as ratios to a floor that is measured in the same run.
//!
//! `scripts/bench` builds the release binaries and runs it. The floor is a bare `posix_spawn` of `sh -c 'echo hi'`; the
//! machine may be busy, so only ratios within one run mean anything. `--short` runs few rounds, to show that it runs.
//! `--also` adds the rows that another program wrote to those of `--json`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on ends"
)]

mod client;
mod latency;
mod memory;
mod table;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::{
    client::{Http, Listening, Session},
    memory::{descendants, peak_kib, pss_kib},
    table::Table,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let server = arguments
        .next()
        .expect("usage: bench SERVER [--short] [--json FILE] [--also FILE]...");
    let server = PathBuf::from(server)
        .canonicalize()
        .expect("the server to measure");
    let rest: Vec<String> = arguments.collect();
    let short = rest.iter().any(|word| word == "--short");
    let json_file = rest
        .iter()
        .position(|word| word == "--json")
        .and_then(|at| rest.get(at + 1))
        .cloned();
    let bench = Bench {
        server,
        rounds: if short { 30 } else { 1000 },
        short,
    };
    let mut table = Table::default();

    let floor = bench.floor();
    table.times("bare posix_spawn of sh -c 'echo hi'", &floor, None);
    for (name, flags) in [
        ("sandbox on", &[] as &[&str]),
        ("core tier", &["--sandbox-tier", "core"]),
        ("no sandbox", &["--no-sandbox"]),
    ] {
        let paced = bench.calls(What::Shell, flags, Duration::from_millis(10), bench.rounds / 5);
        table.times(
            &format!("sync call over stdio, 10 ms apart, {name}"),
            &paced,
            Some(&floor),
        );
        let rapid = bench.calls(What::Shell, flags, Duration::ZERO, bench.rounds);
        table.times(
            &format!("sync call over stdio, back to back, {name}"),
            &rapid,
            Some(&floor),
        );
    }
    let paced = bench.calls(What::Tool, &[], Duration::from_millis(10), bench.rounds / 5);
    table.times("sync call of a tool, 10 ms apart", &paced, Some(&floor));
    let rapid = bench.calls(What::Tool, &[], Duration::ZERO, bench.rounds);
    table.times("sync call of a tool, back to back", &rapid, Some(&floor));
    let spawn_rate = bench.floor_rate();
    table.rate("bare spawn loop on all cores", spawn_rate, None);
    for (name, what) in [("sync calls", What::Shell), ("sync calls of a tool", What::Tool)] {
        let rate = bench.pipelined(what, 16);
        table.rate(&format!("{name}, 16 in flight"), rate, Some(spawn_rate));
    }
    for files in [0, 100, 1000] {
        table.times(
            &format!("start to tools/list, {files} tool files"),
            &bench.starts(files),
            None,
        );
    }
    let http = bench.http();
    table.times("sync call over HTTP, 10 ms apart", &http, Some(&floor));
    let (starts, rate) = bench.sessions();
    table.times(
        "session start to the list of tools over HTTP, isolated",
        &starts,
        None,
    );
    table.rate("sessions one by one, with their ends", rate, None);
    let samples = if short { 10 } else { 300 };
    table.times(
        "finding printed by a tool to client, stdio",
        &latency::over_stdio(&bench.server, samples),
        None,
    );
    table.times(
        "finding printed by a tool to client, HTTP",
        &latency::over_http(&bench.server, samples),
        None,
    );
    bench.memory(&mut table);
    bench.many(&mut table);
    bench.gigabyte(&mut table);

    for pair in rest.windows(2).filter(|pair| pair[0] == "--also") {
        let text = std::fs::read_to_string(&pair[1]).expect("rows of another program");
        table
            .rows
            .extend(serde_json::from_str::<BTreeMap<String, Value>>(&text).unwrap());
    }
    print!("{}", table.text);
    if let Some(file) = json_file {
        std::fs::write(file, serde_json::to_string_pretty(&table.rows).unwrap()).unwrap();
    }
}

/// What says hi.
#[derive(Clone, Copy)]
enum What {
    /// `sandboxed_shell`: a warm shell, which does it itself.
    Shell,
    /// A tool file: a process that waits becomes `/bin/echo`.
    Tool,
}

impl What {
    /// A session whose tools stay as long as their directory does.
    fn start(self, server: &Path, flags: &[&str]) -> (Session, tempfile::TempDir) {
        let tools = tempfile::tempdir().unwrap();
        let tool = json!({"name": "say", "command": "echo", "description": "Says a word.",
            "positional_args": [{"name": "word", "type": "string", "required": true}]});
        std::fs::write(tools.path().join("say.json"), tool.to_string()).unwrap();
        let mut session = Session::start(server, flags, Some(tools.path()));
        for _ in 0..5 {
            self.call(&mut session);
            session.next_answer();
            std::thread::sleep(Duration::from_millis(50));
        }
        (session, tools)
    }

    fn call(self, session: &mut Session) {
        let (tool, mut arguments) = match self {
            Self::Shell => ("sandboxed_shell", json!({"command": "echo hi"})),
            Self::Tool => ("say", json!({"word": "hi"})),
        };
        arguments["execution_mode"] = "synchronous".into();
        session.send_call(tool, arguments);
    }
}

struct Bench {
    server: PathBuf,
    rounds: usize,
    short: bool,
}

impl Bench {
    fn floor(&self) -> Vec<Duration> {
        (0..self.rounds)
            .map(|_| {
                let start = Instant::now();
                let output = Command::new("/bin/sh").args(["-c", "echo hi"]).output().unwrap();
                assert_eq!(output.stdout, b"hi\n");
                start.elapsed()
            })
            .collect()
    }

    fn floor_rate(&self) -> f64 {
        let threads = std::thread::available_parallelism().unwrap().get();
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.floor());
            }
        });
        (threads * self.rounds) as f64 / start.elapsed().as_secs_f64()
    }

    fn calls(&self, what: What, flags: &[&str], pause: Duration, rounds: usize) -> Vec<Duration> {
        let (mut session, _tools) = what.start(&self.server, flags);
        (0..rounds.max(10))
            .map(|_| {
                std::thread::sleep(pause);
                let start = Instant::now();
                what.call(&mut session);
                let answer = session.next_answer();
                assert_eq!(
                    answer["result"]["structuredContent"]["output"], "hi\n",
                    "{answer}"
                );
                start.elapsed()
            })
            .collect()
    }

    fn pipelined(&self, what: What, depth: usize) -> f64 {
        let (mut session, _tools) = what.start(&self.server, &["--max-operations", "16"]);
        let total = self.rounds;
        let start = Instant::now();
        let (mut sent, mut received) = (0, 0);
        while received < total {
            while sent < total && sent - received < depth {
                what.call(&mut session);
                sent += 1;
            }
            let answer = session.next_answer();
            assert_eq!(
                answer["result"]["structuredContent"]["output"], "hi\n",
                "{answer}"
            );
            received += 1;
        }
        total as f64 / start.elapsed().as_secs_f64()
    }

    fn starts(&self, files: usize) -> Vec<Duration> {
        let tools = tempfile::tempdir().unwrap();
        for number in 0..files {
            let tool = json!({"name": format!("tool{number}"), "command": "echo", "description": "Echo.",
                "subcommand": [{"name": "one", "description": "One.", "options": [{"name": "flag", "type": "boolean", "description": "A flag."}]},
                               {"name": "two", "description": "Two.", "positional_args": [{"name": "word", "type": "string", "description": "A word."}]}]});
            std::fs::write(tools.path().join(format!("tool{number}.json")), tool.to_string()).unwrap();
        }
        (0..if self.short { 3 } else { 20 })
            .map(|_| {
                let start = Instant::now();
                let mut session = Session::start(&self.server, &[], Some(tools.path()));
                let listed = session.request("tools/list", json!({}));
                let elapsed = start.elapsed();
                assert!(listed["result"]["tools"].as_array().unwrap().len() >= 2 * files);
                elapsed
            })
            .collect()
    }

    fn http(&self) -> Vec<Duration> {
        let server = Listening::start(&self.server, &[], None);
        let mut http = Http::open(&server.address);
        (0..(self.rounds / 5).max(10))
            .map(|round| {
                std::thread::sleep(Duration::from_millis(10));
                let call = call(round + 2, "sandboxed_shell", &json!({"command": "echo hi"}));
                let start = Instant::now();
                let answer = http.post(&call);
                assert!(answer.contains("hi\\n"), "{answer}");
                start.elapsed()
            })
            .collect()
    }

    /// From the first byte of a client to its list of tools, and how many sessions were opened and ended in a second.
    fn sessions(&self) -> (Vec<Duration>, f64) {
        let flags = ["--session-isolation", "--max-sessions", "1000"];
        let server = Listening::start(&self.server, &flags, None);
        let begun = Instant::now();
        let starts: Vec<Duration> = (0..if self.short { 3 } else { 60 })
            .map(|_| {
                let start = Instant::now();
                let mut http = Http::open(&server.address);
                let listed = http.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
                assert!(listed.contains("sandboxed_shell"), "{listed}");
                let elapsed = start.elapsed();
                http.end();
                elapsed
            })
            .collect();
        let rate = starts.len() as f64 / begun.elapsed().as_secs_f64();
        (starts, rate)
    }

    fn memory(&self, table: &mut Table) {
        let mut session = Session::start(&self.server, &[], None);
        session.settle();
        let pid = session.process.id();
        table.figure("idle memory, server", pss_kib(pid) as f64 / 1024.0, "MB");
        let below: u64 = descendants(pid).into_iter().map(pss_kib).sum();
        table.figure("idle memory, helper and warm shells", below as f64 / 1024.0, "MB");
    }

    fn many(&self, table: &mut Table) {
        let count = if self.short { 50 } else { 1000 };
        let mut session = Session::start(&self.server, &[], None);
        let start = Instant::now();
        for _ in 0..count {
            // One short line is appended in one piece, whatever other processes append.
            session.send_call("sandboxed_shell", json!({"command": "echo $$ >> ended"}));
        }
        let mut ids = HashSet::new();
        for _ in 0..count {
            let answer = session.next_answer();
            let started = &answer["result"]["structuredContent"];
            assert!(started["status"] == "started" || started["status"] == "queued");
            ids.insert(started["operation_id"].as_str().expect("an id").to_owned());
        }
        assert_eq!(ids.len(), count, "every operation has an id of its own");
        let mut open = count as u64;
        while open > 0 {
            session.call("await", json!({"until": "all", "timeout_seconds": 50}));
            let status = session.call("status", json!({}));
            let counts = &status["result"]["structuredContent"];
            let number = |name: &str| counts[name].as_u64().expect("a number");
            open = number("running") + number("queued");
        }
        let ended = std::fs::read_to_string(session.scope().join("ended")).expect("they wrote it");
        assert_eq!(ended.lines().count(), count, "none is lost, none ran twice");
        table.figure(
            &format!("{count} asynchronous operations at once, all finished after"),
            start.elapsed().as_secs_f64(),
            "s",
        );
        table.figure(
            "server memory after that",
            pss_kib(session.process.id()) as f64 / 1024.0,
            "MB",
        );
    }

    fn gigabyte(&self, table: &mut Table) {
        let megabytes = if self.short { 16 } else { 1024 };
        let mut session = Session::start(&self.server, &["--sync-wait", "300s"], None);
        session.settle();
        let command = format!("yes 'a line of ordinary output from a program' | head -c {megabytes}M");
        let start = Instant::now();
        let answer = session.call(
            "sandboxed_shell",
            json!({"command": command, "execution_mode": "synchronous"}),
        );
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(
            answer["result"]["structuredContent"]["output_bytes"],
            json!(megabytes * 1024 * 1024)
        );
        table.figure(
            &format!("{megabytes} MiB of output"),
            f64::from(megabytes) / seconds,
            "MB/s",
        );
        table.figure(
            "server's peak memory meanwhile",
            peak_kib(session.process.id()) as f64 / 1024.0,
            "MB",
        );
    }
}

/// A synchronous call of a tool.
fn call(id: usize, tool: &str, arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    arguments["execution_mode"] = "synchronous".into();
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}
