//! Ways to talk to a server: over its pipes, or over HTTP, where another process listens in front of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use test_support::{Client, Era, HttpServer, Roots, Server, ServerOptions, children};

use super::attempt::Net;

/// The way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Stdio,
    /// The same, with the shell that only reads.
    ReadOnly,
    /// HTTP, all clients served by one child.
    Shared,
    /// HTTP, each client with a child of its own in the directory it named.
    Isolated,
}

/// Servers by network and scope, started when they are needed.
#[derive(Debug)]
pub(super) struct Callers {
    pub(super) way: Way,
    callers: BTreeMap<(Net, PathBuf), Caller>,
    /// The listener. One serves every scope if sessions are isolated.
    fronts: BTreeMap<(Net, Option<PathBuf>), HttpServer>,
}

/// A client of one server.
#[derive(Debug)]
pub(super) enum Caller {
    Pipes(Server),
    Session {
        session: Client,
        /// The process that listens.
        front: i32,
        /// The one that runs commands for this session.
        child: i32,
    },
}

impl Callers {
    pub(super) fn new(way: Way) -> Self {
        Self {
            way,
            callers: BTreeMap::new(),
            fronts: BTreeMap::new(),
        }
    }

    /// The running server for a network and a scope; `options` start one over stdio.
    pub(super) fn get(
        &mut self,
        network: Net,
        scope: &Path,
        options: impl FnOnce() -> ServerOptions,
    ) -> &mut Caller {
        let key = (network, scope.to_owned());
        if !self.is_serving(network, scope) {
            self.callers.remove(&key);
            let caller = match self.way {
                Way::Stdio | Way::ReadOnly => Caller::Pipes(options().open(Era::Legacy)),
                Way::Shared | Way::Isolated => self.connect(network, scope, options),
            };
            self.callers.insert(key.clone(), caller);
        }
        self.callers.get_mut(&key).unwrap()
    }

    pub(super) fn is_serving(&mut self, network: Net, scope: &Path) -> bool {
        self.callers
            .get_mut(&(network, scope.to_owned()))
            .is_some_and(Caller::is_alive)
    }

    /// The process that listens for a client of this scope.
    pub(super) fn front(&mut self, network: Net, scope: &Path) -> &mut HttpServer {
        let of = (self.way == Way::Shared).then(|| scope.to_owned());
        self.fronts
            .get_mut(&(network, of))
            .expect("a server that listens")
    }

    /// Ends everything that serves this scope.
    pub(super) fn end(&mut self, scope: &Path) {
        self.callers.retain(|(_, of), _| of != scope);
        self.fronts.retain(|(_, of), _| of.as_deref() != Some(scope));
    }

    /// Ends everything as a client does that has nothing more to say.
    pub(super) fn leave(&mut self) {
        for caller in self.callers.values_mut() {
            if let Caller::Pipes(server) = caller {
                server.close_input();
                server.wait();
            }
        }
        self.callers.clear();
        self.fronts.clear();
    }

    fn connect(&mut self, network: Net, scope: &Path, options: impl FnOnce() -> ServerOptions) -> Caller {
        let (of, roots) = match self.way {
            Way::Isolated => (None, Roots::One(scope)),
            Way::Shared | Way::Stdio | Way::ReadOnly => (Some(scope.to_owned()), Roots::None),
        };
        let front = self.fronts.entry((network, of)).or_insert_with(|| {
            let options = options().args(["--mode", "http", "--http-port", "0"]);
            HttpServer::start(&match roots {
                Roots::One(_) => options.args(["--session-isolation"]),
                Roots::None => options,
            })
        });
        let mut session = front.session(roots);
        // Only now is the child sure to be there.
        session.call("tools/list", json!({}));
        let front = front.process().pid();
        Caller::Session {
            session,
            front,
            child: child_for(front, scope),
        }
    }
}

impl Caller {
    /// The process that runs the commands, and the one in front of it.
    pub(super) fn processes(&self) -> (i32, i32) {
        match self {
            Self::Pipes(server) => (server.pid(), server.pid()),
            Self::Session { front, child, .. } => (*child, *front),
        }
    }

    /// Runs a script to its end and returns the text of the answer.
    pub(super) fn run(&mut self, script: &str) -> String {
        let arguments = json!({"command": script, "timeout_seconds": 30, "execution_mode": "synchronous"});
        text(&self.tool("sandboxed_shell", arguments))
    }

    /// The same with the shell that only reads.
    pub(super) fn run_read_only(&mut self, script: &str) -> String {
        text(&self.tool(
            "readonly_shell",
            json!({"command": script, "timeout_seconds": 30}),
        ))
    }

    /// Starts a script and returns the operation's id.
    pub(super) fn start(&mut self, script: &str) -> String {
        let arguments = json!({"command": script, "timeout_seconds": 30, "execution_mode": "asynchronous"});
        let result = self.tool("sandboxed_shell", arguments);
        let id = &result["_meta"]["ahma/operation"]["operation_id"];
        id.as_str()
            .unwrap_or_else(|| panic!("not started: {result}"))
            .to_owned()
    }

    /// Calls a tool and returns the result; null if the server died of it.
    pub(super) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        match self {
            Self::Session { session, .. } => session.call("tools/call", params)["result"].take(),
            Self::Pipes(server) => {
                let id = server.request("tools/call", params);
                let deadline = Instant::now() + test_support::TEST_TIMEOUT;
                loop {
                    if let Some(mut answer) = server.answer_within(id, Duration::from_millis(200)) {
                        return answer["result"].take();
                    }
                    if !server.is_running() {
                        return Value::Null;
                    }
                    assert!(
                        Instant::now() < deadline,
                        "no answer to {name} {arguments}\nits processes:\n{}\nits log:\n{}",
                        processes_below(server.pid()),
                        server.complaints()
                    );
                }
            }
        }
    }

    fn is_alive(&mut self) -> bool {
        match self {
            Self::Pipes(server) => server.is_running(),
            Self::Session { front, child, .. } => is_child(*child, *front),
        }
    }
}

fn text(result: &Value) -> String {
    let parts = result["content"].as_array().cloned().unwrap_or_default();
    parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The child of `front` that was given this scope last.
fn child_for(front: i32, scope: &Path) -> i32 {
    let serves = |child: &i32| {
        let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).collect();
        let flag = words.iter().rposition(|word| *word == b"--sandbox-scope");
        flag.and_then(|place| words.get(place + 1))
            .is_some_and(|given| *given == scope.as_os_str().as_encoded_bytes())
            && !words.contains(&b"--defer-sandbox".as_slice())
    };
    test_support::wait_for("a child in the scope", || {
        children(front).into_iter().filter(serves).max()
    })
}

fn is_child(pid: i32, of: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    field("PPid:") == Some(of.to_string().as_str())
        && !field("State:").is_some_and(|state| state.starts_with('Z'))
}

/// The process that hangs, and its place in the kernel.
fn processes_below(pid: i32) -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let mut text = format!(
        "{pid} {} {}\n{}",
        read("comm").trim(),
        read("wchan"),
        read("stack")
    );
    for child in children(pid) {
        text.push_str(&processes_below(child));
    }
    text
}
