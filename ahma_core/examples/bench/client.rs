//! The clients that the benchmark drives servers with.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

/// A client that speaks JSON lines.
pub(crate) struct Session {
    pub(crate) process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
    scope: tempfile::TempDir,
}

/// Results are judged by their parts, and calls in the background by the time of their answer. As variables, which a
/// server that is older than a setting ignores.
pub(crate) const SETTINGS: [(&str, &str); 2] = [("AHMA_RESULTS", "structured"), ("AHMA_INLINE_WAIT", "0s")];

pub(crate) fn initialize(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}})
}

impl Session {
    pub(crate) fn start(server: &Path, flags: &[&str], tools: Option<&Path>) -> Self {
        let mut command = Command::new(server);
        command.envs(SETTINGS).args(flags);
        if let Some(tools) = tools {
            command.arg("--tools-dir").arg(tools);
        }
        Self::of(command)
    }

    /// Opens a session with any server that speaks on its standard streams, in a directory of its own.
    pub(crate) fn of(mut command: Command) -> Self {
        let scope = tempfile::tempdir().unwrap();
        let mut process = command
            .current_dir(scope.path())
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
            scope,
        };
        session.send(&initialize(0));
        session.next_answer();
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    pub(crate) fn scope(&self) -> &Path {
        self.scope.path()
    }

    /// Lets the first shells become warm.
    pub(crate) fn settle(&mut self) {
        for _ in 0..5 {
            self.call(
                "sandboxed_shell",
                json!({"command": ":", "execution_mode": "synchronous"}),
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        self.input.write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}));
    }

    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
        line
    }

    pub(crate) fn next_answer(&mut self) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.next_line()).unwrap();
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.send_call(tool, arguments);
        self.next_answer()
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
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
pub(crate) struct Http {
    stream: TcpStream,
    session: Option<String>,
}

impl Http {
    /// Opens a session with a server.
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut http = Self {
            stream,
            session: None,
        };
        http.post(&initialize(1));
        http.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        http
    }

    /// Posts a request whose answer is a stream, and gives every line of it to `take` until that says stop.
    pub(crate) fn stream(mut self, message: &Value, mut take: impl FnMut(&str) -> bool) {
        self.write(message, "application/json, text/event-stream");
        let mut lines = BufReader::new(self.stream);
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 0 {
            if !take(line.trim_end()) {
                return;
            }
            line.clear();
        }
    }

    fn write(&mut self, message: &Value, accept: &str) {
        self.send("POST", accept, &message.to_string());
    }

    fn send(&mut self, method: &str, accept: &str, body: &str) {
        let session = self
            .session
            .as_ref()
            .map_or(String::new(), |id| format!("mcp-session-id: {id}\r\n"));
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: {accept}\r\n\
             {session}content-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }

    /// Ends the session; its server process is gone afterwards.
    pub(crate) fn end(mut self) {
        self.send("DELETE", "*/*", "");
        self.answer();
    }

    pub(crate) fn post(&mut self, message: &Value) -> String {
        self.write(message, "application/json");
        self.answer()
    }

    fn answer(&mut self) -> String {
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

/// A server that listens, until it is dropped.
pub(crate) struct Listening {
    process: Child,
    pub(crate) address: String,
    _scope: tempfile::TempDir,
}

impl Listening {
    pub(crate) fn start(server: &Path, flags: &[&str], tools: Option<&Path>) -> Self {
        let mut command = Command::new(server);
        command.envs(SETTINGS).args(flags);
        if let Some(tools) = tools {
            command.arg("--tools-dir").arg(tools);
        }
        Self::of(command)
    }

    /// In a directory of its own.
    pub(crate) fn of(mut command: Command) -> Self {
        let scope = tempfile::tempdir().unwrap();
        let mut process = command
            .args(["--mode", "http", "--http-port", "0"])
            .current_dir(scope.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Warnings may come first, as that of a variable that an older server does not know.
        let address = BufReader::new(process.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                Some(
                    line.strip_prefix("listening on http://")?
                        .strip_suffix("/mcp")?
                        .to_owned(),
                )
            })
            .expect("the address it listens on");
        Self {
            process,
            address,
            _scope: scope,
        }
    }
}

impl Listening {
    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.process.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.process.wait().ok();
    }
}
