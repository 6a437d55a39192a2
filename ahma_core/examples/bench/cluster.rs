//! Calls that workers on this machine run, beside calls of the same server on its own.

use std::{
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    What,
    client::{SETTINGS, Session},
    pipelined,
    processor_time::ProcessGroup,
    table::Table,
    timed_calls,
};

/// Operations that one worker runs at once.
const SLOTS: usize = 16;

pub(crate) fn measure(table: &mut Table, server: &Path, short: bool) {
    let Some(cluster) = Cluster::start(server) else {
        table.text +=
            "a cluster: not measured, because there is no nats-server (apt-get install nats-server)\n";
        return;
    };
    let _worker = cluster.worker(SLOTS);
    let slots = SLOTS.to_string();
    let local = Session::start(server, &["--max-operations", &slots], None);
    let mut sessions = [("on one machine", local), ("by a worker", cluster.front_end())];
    sessions.iter_mut().for_each(|(_, session)| session.settle());

    let rounds = if short { 20 } else { 500 };
    let mut hi: Option<Vec<Duration>> = None;
    let mut first: Option<Vec<Duration>> = None;
    for (name, session) in &mut sessions {
        let times = timed_calls(What::Shell, session, Duration::ZERO, rounds);
        table.times(&format!("echo to its result, {name}"), &times, hi.as_deref());
        hi.get_or_insert(times);
        let times: Vec<Duration> = (0..rounds / 2).map(|_| to_first_line(session)).collect();
        table.times(
            &format!("to the first line of output, {name}"),
            &times,
            first.as_deref(),
        );
        first.get_or_insert(times);
    }

    let nats = ProcessGroup::around(cluster.nats.id());
    let used = || nats.as_ref().map_or(0.0, ProcessGroup::used_ms);
    let total = if short { 64 } else { 2_000 };
    let mut rate = None;
    for (name, session) in &mut sessions {
        let before = used();
        let elapsed = pipelined(What::Shell, session, SLOTS, total);
        let calls = total as f64 / elapsed.as_secs_f64();
        table.rate(&format!("echo, 16 in flight, {name}"), calls, rate);
        if rate.replace(calls).is_some() && nats.is_some() {
            let each = (used() - before) / total as f64;
            table.figure("processor time of nats-server for one of these", each, "ms");
        }
    }
    let mebibytes = if short { 4 } else { 128 };
    for (number, (name, session)) in sessions.iter_mut().enumerate() {
        let (before, frames) = (used(), cluster.frames());
        let elapsed = print(session, mebibytes).as_secs_f64();
        let speed = f64::from(mebibytes) / elapsed;
        table.figure(&format!("{mebibytes} MiB of output, {name}"), speed, "MiB/s");
        if number == 0 {
            continue;
        }
        table.rate("frames of that", (cluster.frames() - frames) / elapsed, None);
        if nats.is_some() {
            let each = (used() - before) / f64::from(mebibytes);
            table.figure("processor time of nats-server for one MiB", each, "ms");
        }
    }
    drop(sessions);
    growth(table, server, short);
}

/// Calls that wait, so that places are what is missing and not processors: those of this machine are the same for all.
fn growth(table: &mut Table, server: &Path, short: bool) {
    let Some(cluster) = Cluster::start(server) else {
        return;
    };
    let total = if short { 16 } else { 200 };
    let mut workers = Vec::new();
    let mut rate = None;
    for name in ["one worker", "two workers"] {
        workers.push(cluster.worker(4));
        let mut session = cluster.front_end();
        session.settle();
        let start = Instant::now();
        for _ in 0..total {
            let wait = json!({"command": "sleep 0.1", "execution_mode": "synchronous"});
            session.send_call("sandboxed_shell", wait);
        }
        for _ in 0..total {
            let answer = session.next_answer();
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
        let calls = total as f64 / start.elapsed().as_secs_f64();
        table.rate(&format!("sleep 0.1, {name} of 4 places"), calls, rate);
        rate.get_or_insert(calls);
    }
}

/// From a call to the first answer that has its first line.
fn to_first_line(session: &mut Session) -> Duration {
    let command = json!({"command": "echo hi; sleep 60", "execution_mode": "asynchronous"});
    let start = Instant::now();
    let started = session.call("sandboxed_shell", command);
    let id = &started["result"]["structuredContent"]["operation_id"];
    loop {
        // Not `await`, which looks for lines ten times a second.
        let output = session.call("output", json!({"operation_id": id, "from_line": 1}));
        if output["result"]["structuredContent"]["text"] == "hi\n" {
            break;
        }
    }
    let elapsed = start.elapsed();
    session.call("cancel", json!({"operation_id": id}));
    elapsed
}

/// Time until a client has the result of a command that prints so much.
fn print(session: &mut Session, mebibytes: u32) -> Duration {
    let command = format!("yes 'a line of ordinary output from a program' | head -c {mebibytes}M");
    let arguments = json!({"command": command, "execution_mode": "synchronous"});
    let start = Instant::now();
    let answer = session.call("sandboxed_shell", arguments);
    let printed = &answer["result"]["structuredContent"]["output_bytes"];
    assert_eq!(printed, &json!(mebibytes << 20), "{answer}");
    start.elapsed()
}

/// A NATS server and a directory that front ends and workers share.
struct Cluster<'a> {
    server: &'a Path,
    nats: Child,
    address: String,
    directory: tempfile::TempDir,
}

impl<'a> Cluster<'a> {
    fn start(server: &'a Path) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        // It takes no port 0 on its own.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let nats = Command::new("nats-server")
            .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
            .arg(directory.path().join("nats"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let cluster = Self {
            server,
            nats,
            address: format!("nats://127.0.0.1:{port}"),
            directory,
        };
        std::fs::create_dir(cluster.directory.path().join("scope")).unwrap();
        until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        let made = cluster
            .command(&["cluster", "init", "--max-output", "1G"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(cluster)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.server);
        command
            .args(words)
            .envs(SETTINGS)
            .env("AHMA_CLUSTER", &self.address)
            .env("AHMA_SANDBOX_SCOPE", self.directory.path().join("scope"))
            .current_dir(self.directory.path());
        command
    }

    fn status(&self) -> String {
        let said = self.command(&["cluster", "status"]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    /// One that answers.
    fn worker(&self, slots: usize) -> Worker {
        let alive = || self.status().matches("\nworker ").count();
        let before = alive();
        let process = self
            .command(&["worker", "--max-operations", &slots.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until(|| alive() > before);
        Worker(process)
    }

    fn front_end(&self) -> Session {
        let mut session = Session::of(self.command(&[]));
        let offers = |tools: &Value| tools.to_string().contains("sandboxed_shell");
        until(|| offers(&session.request("tools/list", json!({}))));
        session
    }

    /// Number of frames in the output stream.
    fn frames(&self) -> f64 {
        let status = self.status();
        let (_, after) = status.split_once("output ").expect("the size of the stream");
        let (frames, _) = after.split_once(" frames").expect("a number of frames");
        frames.parse().expect("a number")
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        self.nats.kill().ok();
        self.nats.wait().ok();
    }
}

struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "the cluster does not come up");
        std::thread::sleep(Duration::from_millis(10));
    }
}
