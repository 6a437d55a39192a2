//! The console beside many operations: how soon its pages are there, and what an open page costs the calls of clients.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    client::{Http, Listening, SETTINGS, Session},
    table::Table,
};

/// Calls with the page open, and then as many without.
const TURN: usize = 200;

pub(crate) fn measure(table: &mut Table, server: &Path, short: bool) {
    let (running, kept, turns) = if short { (20, 1_000, 1) } else { (200, 100_000, 20) };
    let state = tempfile::tempdir().unwrap();
    let with_state = || {
        let mut command = Command::new(server);
        command
            .envs(SETTINGS)
            .env("XDG_STATE_HOME", state.path())
            .args(["--max-operations", "256"]);
        command
    };
    fill_history(&mut Session::of(with_state()), state.path(), kept);
    table.text += &format!("{running} operations running, {kept} kept\n");

    let listening = Listening::of(with_state());
    let mut http = Http::open(&listening.address);
    for _ in 0..running {
        let started = http.post(&call("sleep 1000", "asynchronous"));
        assert!(started.contains("started"), "{started}");
    }
    let mut visitor = Visitor::new(&listening.address);
    visitor.log_in("POST", "/console/login");
    for (name, path) in [
        ("Now", "/"),
        ("History, the newest", "/console/history"),
        (
            "History, by tool and status",
            "/console/history?tool=sandboxed_shell&status=failed",
        ),
        ("History, a text that some have", "/console/history?text=kept+1"),
        ("History, a text that none has", "/console/history?text=nowhere"),
    ] {
        let times: Vec<Duration> = (0..turns.max(5)).map(|_| visitor.time(path)).collect();
        table.times(&format!("page {name}"), &times, None);
    }
    let mut over_http = || {
        let answer = http.post(&call("true", "synchronous"));
        assert!(answer.contains(r#""isError":false"#), "{answer}");
    };
    by_turns(table, "call over HTTP", turns, &visitor, &mut over_http);

    let console = Console::start(with_state());
    let mut session = Session::of(with_state());
    session.settle();
    let mut over_stdio = || {
        let answer = session.call(
            "sandboxed_shell",
            call("true", "synchronous")["params"]["arguments"].take(),
        );
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    };
    by_turns(table, "call over stdio", turns, &console.visitor, &mut over_stdio);
}

fn call(command: &str, mode: &str) -> Value {
    let arguments = json!({"command": command, "execution_mode": mode});
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "sandboxed_shell", "arguments": arguments}})
}

/// Runs a few operations and copies their rows, each with an id, a command and a second of its own.
fn fill_history(session: &mut Session, state: &Path, kept: usize) {
    for command in ["echo kept", "exit 3"] {
        session.call(
            "sandboxed_shell",
            json!({"command": command, "execution_mode": "synchronous"}),
        );
    }
    let database = state.join("ahma_mcp/history/history.db");
    let count = |database: &Connection| {
        database
            .query_row(
                "SELECT count(*) FROM operations WHERE ended_at IS NOT NULL",
                [],
                |row| row.get(0),
            )
            .unwrap_or(0)
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let connection = loop {
        if let Ok(connection) = Connection::open(&database)
            && count(&connection) >= 2
        {
            break connection;
        }
        assert!(Instant::now() < deadline, "{} stays empty", database.display());
        std::thread::sleep(Duration::from_millis(50));
    };
    let columns: String = connection
        .query_row(
            "SELECT group_concat(name) FROM pragma_table_info('operations')
             WHERE name NOT IN ('number', 'id', 'command', 'search', 'created_at')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let copy = format!(
        "WITH RECURSIVE copies(copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies WHERE copy < {kept} / 2)
         INSERT INTO operations (id, command, search, created_at, {columns})
         SELECT id || copy, 'kept ' || copy, 'kept ' || copy, created_at - copy * 1000, {columns}
         FROM copies, (SELECT * FROM operations LIMIT 2)"
    );
    connection.execute(&copy, []).unwrap();
}

fn by_turns(table: &mut Table, name: &str, turns: usize, visitor: &Visitor, call: &mut dyn FnMut()) {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..turns {
        for (is_open, times) in [false, true].into_iter().zip(&mut times) {
            let page = is_open.then(|| visitor.open("/console/now/events"));
            for _ in 0..TURN {
                let start = Instant::now();
                call();
                times.push(start.elapsed());
            }
            drop(page);
        }
    }
    let [closed, open] = times;
    table.times(&format!("{name}, the page Now closed"), &closed, None);
    table.times(&format!("{name}, the page Now open"), &open, Some(&closed));
}

/// A browser that is logged in.
struct Visitor {
    address: String,
    cookie: String,
}

impl Visitor {
    fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            cookie: String::new(),
        }
    }

    fn log_in(&mut self, method: &str, path: &str) {
        let answer = read(self.ask(method, path));
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.unwrap_or_else(|| panic!("{answer}"));
        self.cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap_or_default());
    }

    fn ask(&self, method: &str, path: &str) -> TcpStream {
        let Self { address, cookie } = self;
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{cookie}connection: close\r\ncontent-length: 0\r\n\r\n"
        )
        .unwrap();
        stream
    }

    /// Until a page is there as a whole.
    fn time(&self, path: &str) -> Duration {
        let start = Instant::now();
        let answer = read(self.ask("GET", path));
        let elapsed = start.elapsed();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        elapsed
    }

    /// A page that stays open and reads what it is sent.
    fn open(&self, path: &str) -> OpenPage {
        let stream = self.ask("GET", path);
        let mut events = BufReader::new(stream.try_clone().unwrap());
        events.read_line(&mut String::new()).unwrap();
        std::thread::spawn(move || std::io::copy(&mut events, &mut std::io::sink()));
        OpenPage(stream)
    }
}

/// Closed when it is dropped.
struct OpenPage(TcpStream);

impl Drop for OpenPage {
    fn drop(&mut self) {
        self.0.shutdown(Shutdown::Both).ok();
    }
}

fn read(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// `ahma_mcp console`, with a browser that used its link.
struct Console {
    process: Child,
    visitor: Visitor,
}

impl Console {
    fn start(mut command: Command) -> Self {
        let mut process = command
            .args(["console", "--no-open"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let link = lines.find_map(|line| Some(line.ok()?.split_once("http://")?.1.to_owned()));
        let link = link.expect("the link of the console");
        let (address, path) = link.split_once('/').unwrap();
        let mut visitor = Visitor::new(address);
        visitor.log_in("GET", &format!("/{path}"));
        Self { process, visitor }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
