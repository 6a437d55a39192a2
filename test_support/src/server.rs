//! A server under test, driven by raw JSON lines.
//!
//! SDK clients smooth over what a server does wrong, so tests speak the protocol themselves. A [`Server`] is a real
//! process; it is killed when the value is dropped.

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{PATIENCE, Workspace, wait_for};

/// Which protocol the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: a handshake, then requests.
    Legacy,
    /// 2026-07-28: every request says who asks.
    Modern,
}

impl Era {
    pub const BOTH: [Self; 2] = [Self::Legacy, Self::Modern];
}

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    program: PathBuf,
    directory: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl ServerOptions {
    /// `program`, to be run in the workspace's scope with little more than PATH in its environment.
    pub fn new(program: impl Into<PathBuf>, workspace: &Workspace) -> Self {
        let passed = ["PATH", "LD_LIBRARY_PATH"].into_iter();
        let mut environment: Vec<_> = passed
            .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
            .collect();
        // Logs and caches of the server must not end up with those of the user who runs the tests.
        environment.push(("HOME".into(), workspace.home().into()));
        let directory = workspace.scope();
        Self {
            program: program.into(),
            directory,
            arguments: Vec::new(),
            environment,
        }
    }

    /// `program`, to be run in `directory` with nothing in its environment.
    pub fn bare(program: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            directory: directory.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The bare command, for programs that are not to be talked to.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment.iter().cloned());
        command
    }

    /// Starts the server without saying anything to it.
    #[track_caller]
    pub fn start(&self) -> Server {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.program.display()));
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let (tx, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                let message = serde_json::from_slice(&line).unwrap_or_else(
                    |error| json!({"not JSON": error.to_string(), "line": String::from_utf8_lossy(&line)}),
                );
                if tx.send(message).is_err() {
                    return;
                }
            }
        });
        let complaints = Arc::new(Mutex::new(String::new()));
        let sink = complaints.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                sink.lock()
                    .expect("not poisoned")
                    .push_str(&String::from_utf8_lossy(&chunk[..length]));
            }
        });
        Server {
            child,
            stdin,
            messages,
            passed_over: Vec::new(),
            next_id: 1,
            era: Era::Modern,
            complaints,
        }
    }

    /// Starts the server and opens a session of that era.
    #[track_caller]
    pub fn open(&self, era: Era) -> Server {
        let mut server = self.start();
        server.open(era);
        server
    }
}

/// A running server and the client's side of its pipes.
#[derive(Debug)]
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
    /// Messages that came while another was waited for, oldest first.
    passed_over: Vec<Value>,
    next_id: i64,
    era: Era,
    complaints: Arc<Mutex<String>>,
}

impl Server {
    /// Does what a client of that era does first.
    #[track_caller]
    pub fn open(&mut self, era: Era) -> Value {
        self.era = era;
        match era {
            Era::Modern => self.call("server/discover", json!({})),
            Era::Legacy => {
                let answer = self.call(
                    "initialize",
                    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
                );
                self.notify("notifications/initialized", json!({}));
                answer
            }
        }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// What the server wrote to stderr so far.
    pub fn complaints(&self) -> String {
        self.complaints.lock().expect("not poisoned").clone()
    }

    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("input was closed");
        stdin.write_all(bytes).expect("the server reads");
    }

    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    #[track_caller]
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and gives its id.
    #[track_caller]
    pub fn request(&mut self, method: &str, mut params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == Era::Modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and waits for its answer, the whole message.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a tool and gives the result; panics on a protocol error.
    #[track_caller]
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let mut answer = self.call("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{name} was refused: {answer}");
        answer["result"].take()
    }

    /// The names of the tools, in the order they are listed.
    #[track_caller]
    pub fn tool_names(&mut self) -> Vec<String> {
        let answer = self.call("tools/list", json!({}));
        let tools = answer["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("no list of tools: {answer}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("tools have names").to_owned())
            .collect()
    }

    /// The answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        self.expect(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// The answer to a request, if it comes within `patience`.
    pub fn answer_within(&mut self, id: i64, patience: Duration) -> Option<Value> {
        let wanted = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(place) = self.passed_over.iter().position(wanted) {
            return Some(self.passed_over.remove(place));
        }
        let deadline = Instant::now() + patience;
        while let Ok(message) = self
            .messages
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if wanted(&message) {
                return Some(message);
            }
            self.passed_over.push(message);
        }
        None
    }

    /// The next notification of that kind.
    #[track_caller]
    pub fn notification(&mut self, method: &str) -> Value {
        self.expect(method, |message| message["method"] == method)
    }

    /// The first message, already here or still to come, that `wanted` accepts. The others are kept.
    #[track_caller]
    pub fn expect(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.passed_over.iter().position(&wanted) {
            return self.passed_over.remove(place);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self
                .messages
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.passed_over.push(message),
                Err(reason) => panic!(
                    "{what} never came ({reason}); other messages: {:#?}; stderr: {}",
                    self.passed_over,
                    self.complaints()
                ),
            }
        }
    }

    /// Every message that has come and was not asked for, including those that come within `pause`.
    pub fn others(&mut self, pause: Duration) -> Vec<Value> {
        while let Ok(message) = self.messages.recv_timeout(pause) {
            self.passed_over.push(message);
        }
        std::mem::take(&mut self.passed_over)
    }

    /// Stops reading: the pipe is closed when the next message has come.
    pub fn close_output(&mut self) {
        self.messages = mpsc::channel().1;
    }

    /// Like [`Server::send_bytes`], to a server that may be gone.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(bytes))
    }

    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("not zero");
        kill_process(pid, signal).expect("the server is there");
    }

    /// How the server ended. Something else must have asked it to.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the server to end", || self.child.try_wait().expect("our child"))
    }

    /// Whether the server is still there.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
