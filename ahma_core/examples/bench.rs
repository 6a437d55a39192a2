//! The benchmark: what a call costs, as ratios to a floor that is measured in the same run.
//!
//! `scripts/bench` builds the release binaries and runs it. The floor is a bare `posix_spawn` of `sh -c 'echo hi'`; the
//! machine may be busy, so only ratios within one run mean anything. `--short` runs few rounds, to show that it runs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on ends"
)]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let server = arguments
        .next()
        .expect("usage: bench SERVER [--short] [--json FILE]");
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
        let paced = bench.calls(flags, Duration::from_millis(10), bench.rounds / 5);
        table.times(
            &format!("sync call over stdio, 10 ms apart, {name}"),
            &paced,
            Some(&floor),
        );
        let rapid = bench.calls(flags, Duration::ZERO, bench.rounds);
        table.times(
            &format!("sync call over stdio, back to back, {name}"),
            &rapid,
            Some(&floor),
        );
    }
    let spawn_rate = bench.floor_rate();
    table.rate("bare spawn loop on all cores", spawn_rate, None);
    table.rate("sync calls, 16 in flight", bench.pipelined(16), Some(spawn_rate));
    for files in [0, 100, 1000] {
        table.times(
            &format!("start to tools/list, {files} tool files"),
            &bench.starts(files),
            None,
        );
    }
    let http = bench.http();
    table.times("sync call over HTTP, 10 ms apart", &http, Some(&floor));
    bench.memory(&mut table);
    bench.many(&mut table);
    bench.gigabyte(&mut table);

    print!("{}", table.text);
    if let Some(file) = json_file {
        std::fs::write(file, serde_json::to_string_pretty(&table.rows).unwrap()).unwrap();
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

    fn calls(&self, flags: &[&str], pause: Duration, rounds: usize) -> Vec<Duration> {
        let mut session = Session::start(&self.server, flags, None);
        session.settle();
        (0..rounds.max(10))
            .map(|_| {
                std::thread::sleep(pause);
                let start = Instant::now();
                let answer = session.call(
                    "sandboxed_shell",
                    json!({"command": "echo hi", "execution_mode": "synchronous"}),
                );
                assert_eq!(answer["result"]["structuredContent"]["output"], "hi\n");
                start.elapsed()
            })
            .collect()
    }

    fn pipelined(&self, depth: usize) -> f64 {
        let mut session = Session::start(&self.server, &["--max-operations", "16"], None);
        session.settle();
        let total = self.rounds;
        let start = Instant::now();
        let (mut sent, mut received) = (0, 0);
        while received < total {
            while sent < total && sent - received < depth {
                session.send_call(
                    "sandboxed_shell",
                    json!({"command": "echo hi", "execution_mode": "synchronous"}),
                );
                sent += 1;
            }
            session.next_answer();
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
        let scope = tempfile::tempdir().unwrap();
        let mut child = Command::new(&self.server)
            .args(["--mode", "http", "--http-port", "0"])
            .current_dir(scope.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .unwrap()
            .strip_suffix("/mcp")
            .unwrap();
        let mut http = Http {
            stream: TcpStream::connect(address).unwrap(),
            session: None,
        };
        http.stream.set_nodelay(true).unwrap();
        http.post(&initialize(1));
        http.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let times = (0..(self.rounds / 5).max(10))
            .map(|round| {
                std::thread::sleep(Duration::from_millis(10));
                let arguments = json!({"command": "echo hi", "execution_mode": "synchronous"});
                let call = json!({"jsonrpc": "2.0", "id": round + 2, "method": "tools/call",
                    "params": {"name": "sandboxed_shell", "arguments": arguments}});
                let start = Instant::now();
                let answer = http.post(&call);
                assert!(answer.contains("hi\\n"), "{answer}");
                start.elapsed()
            })
            .collect();
        rustix::process::kill_process(pid_of(&child), rustix::process::Signal::TERM).unwrap();
        child.wait().unwrap();
        times
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
            session.send_call("sandboxed_shell", json!({"command": "echo $$"}));
        }
        for _ in 0..count {
            assert_eq!(
                session.next_answer()["result"]["structuredContent"]["status"],
                "started"
            );
        }
        let mut finished = 0;
        while finished < count {
            session.call("await", json!({"until": "all", "timeout_seconds": 50}));
            let status = session.call("status", json!({}));
            let counts = &status["result"]["structuredContent"];
            finished = counts["totals"]["ended"]
                .as_u64()
                .map_or(count, |ended| ended as usize);
        }
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

/// A client that speaks JSON lines.
struct Session {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
    _scope: tempfile::TempDir,
}

fn initialize(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}})
}

impl Session {
    fn start(server: &Path, flags: &[&str], tools: Option<&Path>) -> Self {
        let scope = tempfile::tempdir().unwrap();
        let mut command = Command::new(server);
        command.args(flags).current_dir(scope.path());
        if let Some(tools) = tools {
            command.arg("--tools-dir").arg(tools);
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (
            process.stdin.take().unwrap(),
            BufReader::new(process.stdout.take().unwrap()),
        );
        let mut session = Self {
            process,
            input,
            output,
            next_id: 1,
            _scope: scope,
        };
        session.send(&initialize(0));
        session.next_answer();
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    /// Lets the first shells become warm.
    fn settle(&mut self) {
        for _ in 0..5 {
            self.call(
                "sandboxed_shell",
                json!({"command": ":", "execution_mode": "synchronous"}),
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn send(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        self.input.write_all(line.as_bytes()).unwrap();
    }

    fn send_call(&mut self, tool: &str, arguments: Value) {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}));
    }

    fn next_answer(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.send_call(tool, arguments);
        self.next_answer()
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.next_answer()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A client on one kept-alive connection that asks for plain JSON.
struct Http {
    stream: TcpStream,
    session: Option<String>,
}

impl Http {
    fn post(&mut self, message: &Value) -> String {
        let body = message.to_string();
        let session = self
            .session
            .as_ref()
            .map_or(String::new(), |id| format!("mcp-session-id: {id}\r\n"));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\n\
             {session}content-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 65536];
        loop {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the connection closed");
            answer.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&answer);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let header = |name: &str| {
                    head.lines()
                        .filter_map(|line| line.split_once(": "))
                        .find(|(key, _)| key.eq_ignore_ascii_case(name))
                        .map(|(_, value)| value.to_owned())
                };
                let length = header("content-length")
                    .and_then(|length| length.parse().ok())
                    .unwrap_or(0);
                if body.len() >= length {
                    self.session = header("mcp-session-id").or(self.session.take());
                    return body.to_owned();
                }
            }
        }
    }
}

#[derive(Default)]
struct Table {
    text: String,
    rows: BTreeMap<String, Value>,
}

impl Table {
    fn times(&mut self, name: &str, times: &[Duration], floor: Option<&[Duration]>) {
        let [p50, p95, p99] = percentiles(times);
        let ratio = floor.map(|floor| p50 / percentiles(floor)[0]);
        let shown = ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x floor"));
        self.text += &format!("{name:58} p50 {p50:7.3} ms  p95 {p95:7.3}  p99 {p99:7.3}  {shown}\n");
        self.rows.insert(
            name.into(),
            json!({"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "ratio": ratio}),
        );
    }

    fn rate(&mut self, name: &str, rate: f64, floor: Option<f64>) {
        let ratio = floor.map(|floor| rate / floor);
        let shown = ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x floor"));
        self.text += &format!("{name:58} {rate:11.0} /s {:26}{shown}\n", "");
        self.rows
            .insert(name.into(), json!({"per_second": rate, "ratio": ratio}));
    }

    fn figure(&mut self, name: &str, value: f64, unit: &str) {
        self.text += &format!("{name:58} {value:11.1} {unit}\n");
        self.rows
            .insert(name.into(), json!({"value": value, "unit": unit}));
    }
}

fn percentiles(times: &[Duration]) -> [f64; 3] {
    let mut sorted = times.to_vec();
    sorted.sort();
    [0.50, 0.95, 0.99]
        .map(|share| sorted[((sorted.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0)
}

fn pid_of(child: &Child) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(child.id() as i32).unwrap()
}

fn pss_kib(pid: u32) -> u64 {
    kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

fn peak_kib(pid: u32) -> u64 {
    kib(&format!("/proc/{pid}/status"), "VmHWM:")
}

fn kib(file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        for task in std::fs::read_dir(format!("/proc/{}/task", found[next]))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
        next += 1;
    }
    found.split_off(1)
}
