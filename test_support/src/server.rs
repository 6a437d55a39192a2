//! A server under test, and a client on its pipes. It is a real process, killed when the value is dropped.

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    ops::{Deref, DerefMut},
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, mpsc},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Client, Era, Workspace, client::Wire, wait_for};

/// Program, arguments and environment of a server.
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
        // Tests read the parts of results, and tell an answer at once from one at the end.
        environment.push(("AHMA_RESULTS".into(), "structured".into()));
        environment.push(("AHMA_INLINE_WAIT".into(), "0s".into()));
        let directory = workspace.scope();
        Self {
            program: program.into(),
            directory,
            arguments: Vec::new(),
            environment,
        }
    }

    /// Lets results and waiting be as clients of a server without flags find them.
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        self.environment
            .retain(|(name, _)| !name.to_string_lossy().starts_with("AHMA_"));
        self
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
        let input = Input(Arc::new(Mutex::new(stdin)));
        let pipes = Pipes {
            input: input.clone(),
            complaints,
        };
        Server {
            child,
            input,
            client: Client::new(pipes, messages),
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

/// A running server and a client on its pipes.
#[derive(Debug)]
pub struct Server {
    child: Child,
    input: Input,
    client: Client,
}

/// The server's standard input, until it is closed.
#[derive(Debug, Clone)]
struct Input(Arc<Mutex<Option<ChildStdin>>>);

impl Input {
    fn lock(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.0.lock().expect("not poisoned")
    }

    #[track_caller]
    fn write(&self, bytes: &[u8]) {
        let mut input = self.lock();
        let stdin = input.as_mut().expect("input was closed");
        stdin.write_all(bytes).expect("the server reads");
    }
}

#[derive(Debug)]
struct Pipes {
    input: Input,
    complaints: Arc<Mutex<String>>,
}

impl Wire for Pipes {
    fn send(&mut self, message: &Value) {
        self.input.write(format!("{message}\n").as_bytes());
    }

    fn complaints(&self) -> String {
        self.complaints.lock().expect("not poisoned").clone()
    }
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Server {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.write(bytes);
    }

    /// Like [`Server::send_bytes`], to a server that may be gone.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.input
            .lock()
            .as_mut()
            .map_or(Ok(()), |stdin| stdin.write_all(bytes))
    }

    pub fn close_input(&mut self) {
        *self.input.lock() = None;
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("not zero");
        kill_process(pid, signal).expect("the server is there");
    }

    /// Exit status of a server that was told to end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the server to end", || self.child.try_wait().expect("our child"))
    }

    /// True while the server runs.
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
