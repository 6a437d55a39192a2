//! Measures what the bridge adds: the same backend bare over its pipe and through the bridge, in one run.
//!
//! `load BRIDGE BACKEND [ARGS]` starts both programs itself. The client is a bare HTTP/1.1 writer, so that
//! what is measured is the bridge.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for people, which stops at the first problem"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const CALLS: usize = 4000;
const IN_FLIGHT: usize = 16;
const SESSIONS: usize = 100;

fn main() {
    let mut words = std::env::args().skip(1);
    let usage = "usage: load BRIDGE BACKEND [ARGS]";
    let bridge = words.next().expect(usage);
    let backend: Vec<String> = words.collect();
    assert!(!backend.is_empty(), "{usage}");

    report("stdio, one at a time", stdio_serial(&backend));
    println!(
        "{:<34} {:>9.0} requests/s",
        format!("stdio, {IN_FLIGHT} in flight"),
        stdio_rate(&backend)
    );
    for isolated in [false, true] {
        let mode = if isolated { "isolated" } else { "shared" };
        let server = Server::start(&bridge, &backend, isolated);
        for (form, accept) in [
            ("JSON", "application/json"),
            ("SSE", "application/json, text/event-stream"),
        ] {
            let session = server.session();
            report(
                &format!("{mode}, {form}, one at a time"),
                serial(&server, &session, accept),
            );
            let rate = rate(&server, isolated, accept);
            println!(
                "{:<34} {rate:>9.0} requests/s",
                format!("{mode}, {form}, {IN_FLIGHT} in flight")
            );
        }
        let before = server.memory();
        let (starts, elapsed) = sessions(&server);
        let grown = server.memory().saturating_sub(before);
        report(&format!("{mode}, session start"), starts);
        println!(
            "{:<34} {:>9.0} sessions/s",
            format!("{mode}, sessions one by one"),
            SESSIONS as f64 / elapsed.as_secs_f64()
        );
        println!(
            "{:<34} {:>9} KiB each, bridge alone",
            format!("{mode}, memory of {SESSIONS} sessions"),
            grown / SESSIONS as u64
        );
    }
}

fn report(label: &str, mut times: Vec<Duration>) {
    times.sort();
    let at =
        |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1000.0;
    println!(
        "{label:<34} p50 {:>7.3} ms   p95 {:>7.3} ms   p99 {:>7.3} ms",
        at(50),
        at(95),
        at(99)
    );
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

fn stdio_serial(backend: &[String]) -> Vec<Duration> {
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
    (0..CALLS)
        .map(|id| {
            let start = Instant::now();
            ask(&call(id));
            start.elapsed()
        })
        .collect()
}

fn stdio_rate(backend: &[String]) -> f64 {
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
    for id in IN_FLIGHT..CALLS * 4 {
        answers.recv().expect("answer");
        send(&call(id));
    }
    (0..IN_FLIGHT).for_each(|_| drop(answers.recv().expect("answer")));
    (CALLS * 4) as f64 / start.elapsed().as_secs_f64()
}

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(bridge: &str, backend: &[String], isolated: bool) -> Self {
        let mut command = Command::new(bridge);
        command.args(["--http-port", "0", "--max-sessions", "1000"]);
        if isolated {
            command.arg("--session-isolation");
        }
        let mut process = command
            .arg("--")
            .args(backend)
            .stderr(Stdio::piped())
            .env("NO_COLOR", "1")
            .spawn()
            .expect("bridge");
        let mut stderr = BufReader::new(process.stderr.take().expect("stderr"));
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(
                stderr.read_line(&mut line).expect("stderr") > 0,
                "the bridge did not start"
            );
            if let Some((_, rest)) = line.split_once("listening on http://") {
                break rest.trim().trim_end_matches("/mcp").to_owned();
            }
        };
        thread::spawn(move || drop(std::io::copy(&mut stderr, &mut std::io::sink())));
        Self { process, address }
    }

    fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        Connection {
            reader: BufReader::new(stream.try_clone().expect("clone")),
            stream,
        }
    }

    fn session(&self) -> String {
        let head = self.connect().post("application/json", None, INITIALIZE);
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        id.expect("session id").trim().to_owned()
    }

    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.process.wait().ok();
    }
}

struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Connection {
    /// Posts and reads the whole answer; gives back its head.
    fn post(&mut self, accept: &str, session: Option<&str>, body: &str) -> String {
        let session = session
            .map(|id| format!("Mcp-Session-Id: {id}\r\n"))
            .unwrap_or_default();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n{session}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).expect("write");
        let (mut head, mut length, mut chunked) = (String::new(), 0, false);
        loop {
            let start = head.len();
            self.reader.read_line(&mut head).expect("head");
            let line = head[start..].trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().expect("length");
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        if !chunked {
            let mut body = vec![0; length];
            self.reader.read_exact(&mut body).expect("body");
            return head;
        }
        loop {
            let mut size = String::new();
            self.reader.read_line(&mut size).expect("chunk");
            let size = usize::from_str_radix(size.trim(), 16).expect("chunk size");
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).expect("chunk");
            if size == 0 {
                return head;
            }
        }
    }
}

fn serial(server: &Server, session: &str, accept: &str) -> Vec<Duration> {
    let mut connection = server.connect();
    (0..CALLS)
        .map(|id| {
            let start = Instant::now();
            connection.post(accept, Some(session), &call(id));
            start.elapsed()
        })
        .collect()
}

fn rate(server: &Server, isolated: bool, accept: &str) -> f64 {
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
                for id in 0..CALLS * 4 / IN_FLIGHT {
                    connection.post(accept, Some(&session), &call(id));
                }
            });
        }
    });
    (CALLS * 4) as f64 / start.elapsed().as_secs_f64()
}

fn sessions(server: &Server) -> (Vec<Duration>, Duration) {
    let begin = Instant::now();
    let times = (0..SESSIONS)
        .map(|_| {
            let start = Instant::now();
            let session = server.session();
            server
                .connect()
                .post("application/json", Some(&session), &call(1));
            start.elapsed()
        })
        .collect();
    (times, begin.elapsed())
}
