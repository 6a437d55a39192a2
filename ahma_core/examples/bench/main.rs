//! The benchmark: what a call costs, as ratios to a floor that is measured in the same run.
//!
//! `scripts/bench` builds the release binaries and runs it. The floor is a bare `posix_spawn` of `sh -c 'echo hi'`; the
//! machine may be busy, so only ratios within one run mean anything. `--short` runs few rounds, to show that it runs.
//! `--json` keeps the rows, `--also` adds those that another program wrote, `--against` compares them with a run before, and
//! `--peers` measures other servers too. `--beside` measures other builds of the server turn by turn, and nothing else;
//! `--history` measures what the history costs, and nothing else; `--cluster` the same for workers on NATS; `--console` the
//! pages of the console and what one that is open costs, beside many operations.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on ends"
)]

mod against;
mod beside;
mod client;
mod cluster;
mod console;
mod history;
mod latency;
mod memory;
mod peers;
mod processor_time;
mod sessions;
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
    memory::{descendants, memories, peak_kib, pss_kib},
    processor_time::ProcessGroup,
    table::Table,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().expect(
        "usage: bench SERVER [--short] [--json FILE] [--also FILE]... [--against FILE] [--peers FILE] [--beside SERVER]... [--history] [--cluster] [--console]",
    );
    let server = PathBuf::from(server)
        .canonicalize()
        .expect("the server to measure");
    let rest: Vec<String> = arguments.collect();
    let short = rest.iter().any(|word| word == "--short");
    let file_of = |flag: &str| {
        let at = rest.iter().position(|word| word == flag)?;
        rest.get(at + 1).map(PathBuf::from)
    };
    let bench = Bench {
        server,
        rounds: if short { 30 } else { 1000 },
        short,
    };
    let mut table = Table::default();
    let all_of = |flag: &str| -> Vec<&str> {
        let pairs = rest.windows(2).filter(|pair| pair[0] == flag);
        pairs.map(|pair| pair[1].as_str()).collect()
    };

    let others = all_of("--beside").into_iter().map(PathBuf::from);
    let builds: Vec<PathBuf> = std::iter::once(bench.server.clone()).chain(others).collect();
    if builds.len() > 1 {
        beside::measure(&mut table, &builds, floor);
    } else if rest.iter().any(|word| word == "--history") {
        history::measure(
            &mut table,
            &bench.server,
            short,
            &floor(Duration::ZERO, bench.rounds),
        );
    } else if rest.iter().any(|word| word == "--cluster") {
        cluster::measure(&mut table, &bench.server, short);
    } else if rest.iter().any(|word| word == "--console") {
        console::measure(&mut table, &bench.server, short);
    } else {
        bench.all(&mut table, file_of("--peers").as_deref());
    }
    for file in all_of("--also") {
        let text = std::fs::read_to_string(file).expect("rows of another program");
        table
            .rows
            .extend(serde_json::from_str::<BTreeMap<String, Value>>(&text).unwrap());
    }
    print!("{}", table.text);
    if let Some(file) = file_of("--against") {
        print!("{}", against::comparison(&table.rows, &file));
    }
    if let Some(file) = file_of("--json") {
        std::fs::write(file, serde_json::to_string_pretty(&table.rows).unwrap()).unwrap();
    }
}

/// The command of every call.
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
    /// Every row.
    fn all(&self, table: &mut Table, peers: Option<&Path>) {
        // After a pause the caches of the processors are another program's, and a bare spawn takes longer too.
        let paced_floor = floor(PACE, self.rounds / 5);
        let floor = floor(Duration::ZERO, self.rounds);
        table.times("bare posix_spawn of sh -c 'echo hi'", &floor, None);
        table.times(
            "bare posix_spawn of sh -c 'echo hi', 10 ms apart",
            &paced_floor,
            Some(&floor),
        );
        history::measure(table, &self.server, self.short, &floor);
        for (name, flags) in [
            ("sandbox on", &[] as &[&str]),
            ("core tier", &["--sandbox-tier", "core"]),
            ("no sandbox", &["--no-sandbox"]),
        ] {
            let paced = self.calls(What::Shell, flags, PACE, self.rounds / 5);
            table.times(
                &format!("sync call over stdio, 10 ms apart, {name}"),
                &paced,
                Some(&floor),
            );
            let rapid = self.calls(What::Shell, flags, Duration::ZERO, self.rounds);
            table.times(
                &format!("sync call over stdio, back to back, {name}"),
                &rapid,
                Some(&floor),
            );
        }
        let paced = self.calls(What::Tool, &[], PACE, self.rounds / 5);
        table.times("sync call of a tool, 10 ms apart", &paced, Some(&floor));
        let rapid = self.calls(What::Tool, &[], Duration::ZERO, self.rounds);
        table.times("sync call of a tool, back to back", &rapid, Some(&floor));
        let spawn_rate = self.floor_rate();
        table.rate("bare spawn loop on all cores", spawn_rate, None);
        for (name, what) in [("sync calls", What::Shell), ("sync calls of a tool", What::Tool)] {
            for (how, depth) in [("back to back", 1), ("16 in flight", 16)] {
                let (rate, used) = self.pipelined(what, depth);
                table.rate(&format!("{name}, {how}"), rate, Some(spawn_rate));
                if let Some(used) = used {
                    table.figure(
                        &format!("processor time of one of these {name}, {how}"),
                        used,
                        "ms",
                    );
                }
            }
        }
        for files in [0, 100, 1000] {
            table.times(
                &format!("start to tools/list, {files} tool files"),
                &self.starts(files),
                None,
            );
        }
        for (name, flags) in BRIDGES {
            let paced = self.http(flags, PACE, self.rounds / 5);
            table.times(
                &format!("sync call over HTTP, 10 ms apart, {name}"),
                &paced,
                Some(&floor),
            );
            let rapid = self.http(flags, Duration::ZERO, self.rounds);
            table.times(
                &format!("sync call over HTTP, back to back, {name}"),
                &rapid,
                Some(&floor),
            );
            let rate = self.http_rate(flags, 16);
            table.rate(
                &format!("sync calls over HTTP, 16 clients, {name}"),
                rate,
                Some(spawn_rate),
            );
        }
        sessions::measure(table, self);
        cluster::measure(table, &self.server, self.short);
        let samples = if self.short { 10 } else { 300 };
        table.times(
            "finding printed by a tool to client, stdio",
            &latency::over_stdio(&self.server, samples),
            None,
        );
        table.times(
            "finding printed by a tool to client, HTTP",
            &latency::over_http(&self.server, samples),
            None,
        );
        let clients = if self.short { 3 } else { sessions::MANY };
        table.times(
            &format!("the same, {clients} isolated sessions at once"),
            &latency::in_sessions(&self.server, clients, samples / 10),
            None,
        );
        if let Some(file) = peers {
            peers::measure(table, file, self.rounds, &floor);
        }
        self.memory(table);
        self.many(table);
        self.gigabyte(table);
    }

    fn floor_rate(&self) -> f64 {
        let threads = std::thread::available_parallelism().unwrap().get();
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| floor(Duration::ZERO, self.rounds));
            }
        });
        (threads * self.rounds) as f64 / start.elapsed().as_secs_f64()
    }

    fn calls(&self, what: What, flags: &[&str], pause: Duration, rounds: usize) -> Vec<Duration> {
        let (mut session, _tools) = what.start(&self.server, flags);
        timed_calls(what, &mut session, pause, rounds.max(10))
    }

    /// Calls in a second, and the processor time of one in milliseconds, with everything that was started for it.
    fn pipelined(&self, what: What, depth: usize) -> (f64, Option<f64>) {
        let (mut session, _tools) = what.start(&self.server, &["--max-operations", "16"]);
        let group = ProcessGroup::around(session.process.id());
        let before = group.as_ref().map(ProcessGroup::used_ms);
        let total = self.rounds;
        let elapsed = pipelined(what, &mut session, depth, total);
        let rate = total as f64 / elapsed.as_secs_f64();
        let used = group.zip(before).map(|(group, before)| group.used_ms() - before);
        (rate, used.map(|used| used / total as f64))
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

    fn http(&self, flags: &[&str], pause: Duration, rounds: usize) -> Vec<Duration> {
        let server = Listening::start(&self.server, flags, None);
        let mut http = Http::open(&server.address);
        say_hi(&mut http, 1);
        (0..rounds.max(10))
            .map(|round| {
                std::thread::sleep(pause);
                let start = Instant::now();
                say_hi(&mut http, round + 2);
                start.elapsed()
            })
            .collect()
    }

    /// Calls in a second by several clients, each with one under way.
    fn http_rate(&self, flags: &[&str], clients: usize) -> f64 {
        let server = Listening::start(&self.server, flags, None);
        let each = (self.rounds / clients).max(2);
        let mut sessions: Vec<Http> = (0..clients).map(|_| Http::open(&server.address)).collect();
        for http in &mut sessions {
            say_hi(http, 1);
        }
        let start = Instant::now();
        std::thread::scope(|scope| {
            for http in &mut sessions {
                scope.spawn(move || (0..each).for_each(|round| say_hi(http, round + 2)));
            }
        });
        (clients * each) as f64 / start.elapsed().as_secs_f64()
    }

    /// Some seconds without a call: then a server gives back what it does not need.
    fn fall_quiet(&self) {
        if !self.short {
            std::thread::sleep(UNTIL_QUIET);
        }
    }

    fn memory(&self, table: &mut Table) {
        let mut session = Session::start(&self.server, &[], None);
        session.settle();
        self.fall_quiet();
        let pid = session.process.id();
        table.figure("idle memory, server", pss_kib(pid) as f64 / 1024.0, "MB");
        let below: u64 = memories(&descendants(pid)).into_iter().map(pss_kib).sum();
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

/// Flags of a server that listens.
const BRIDGES: [(&str, &[&str]); 2] = [("shared", &[]), ("isolated", &["--session-isolation"])];

/// Longer than a server takes to notice that no call has come for a while.
const UNTIL_QUIET: Duration = Duration::from_secs(15);

/// Pause before each call of a client that thinks in between.
const PACE: Duration = Duration::from_millis(10);

fn floor(pause: Duration, rounds: usize) -> Vec<Duration> {
    (0..rounds)
        .map(|_| {
            std::thread::sleep(pause);
            let start = Instant::now();
            let output = Command::new("/bin/sh").args(["-c", "echo hi"]).output().unwrap();
            assert_eq!(output.stdout, b"hi\n");
            start.elapsed()
        })
        .collect()
}

/// Calls one after the other, with a pause before each.
fn timed_calls(what: What, session: &mut Session, pause: Duration, rounds: usize) -> Vec<Duration> {
    (0..rounds)
        .map(|_| {
            std::thread::sleep(pause);
            let start = Instant::now();
            what.call(session);
            said_hi(session);
            start.elapsed()
        })
        .collect()
}

/// The time of `total` calls, `depth` of which are always under way.
fn pipelined(what: What, session: &mut Session, depth: usize, total: usize) -> Duration {
    let start = Instant::now();
    let (mut sent, mut received) = (0, 0);
    while received < total {
        while sent < total && sent - received < depth {
            what.call(session);
            sent += 1;
        }
        said_hi(session);
        received += 1;
    }
    start.elapsed()
}

/// Takes the next answer.
fn said_hi(session: &mut Session) {
    let answer = session.next_answer();
    assert_eq!(
        answer["result"]["structuredContent"]["output"], "hi\n",
        "{answer}"
    );
}

fn say_hi(http: &mut Http, id: usize) {
    let answer = http.post(&call(id, "sandboxed_shell", &json!({"command": "echo hi"})));
    assert!(answer.contains("hi\\n"), "{answer}");
}

/// A synchronous call of a tool.
fn call(id: usize, tool: &str, arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    arguments["execution_mode"] = "synchronous".into();
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}
