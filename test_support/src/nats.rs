//! Real NATS servers with JetStream, killed when the value is dropped.

use std::{
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{needs, quiet_port, test_programs, wait_for};

/// One server, or three that keep copies of everything. Each keeps its streams when it is killed and started again.
#[derive(Debug)]
pub struct Nats {
    servers: Vec<NatsServer>,
}

impl Nats {
    /// Nothing, with the reason, where there is no `nats-server`.
    #[track_caller]
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with more arguments.
    #[track_caller]
    pub fn start_with(arguments: &[&str]) -> Option<Self> {
        if !needs("nats-server", &["--version"], "apt-get install nats-server") {
            return None;
        }
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        let server = NatsServer::start(Path::new("nats-server"), arguments.collect());
        Some(Self {
            servers: vec![server],
        })
    }

    /// Three servers of a version that may be trusted with copies, which Debian's is not.
    #[track_caller]
    pub fn start_three() -> Option<Self> {
        let program = test_programs().join("tools/bin/nats-server");
        if !needs(&program, &["--version"], "scripts/test-programs") {
            return None;
        }
        let between =
            [quiet_port(), quiet_port(), quiet_port()].map(|port| format!("nats://127.0.0.1:{port}"));
        let routes = between.join(",");
        let words = |own: &String| {
            let name = format!("n{}", own.rsplit_once(':').unwrap().1);
            let words = [
                "--name",
                &name,
                "--cluster_name",
                "three",
                "--cluster",
                own,
                "--routes",
                &routes,
            ];
            words.map(str::to_owned).into()
        };
        let servers = between
            .iter()
            .map(|own| NatsServer::start(&program, words(own)))
            .collect();
        Some(Self { servers })
    }

    pub fn address(&self) -> String {
        let addresses: Vec<String> = self
            .servers
            .iter()
            .map(|server| format!("nats://127.0.0.1:{}", server.port))
            .collect();
        addresses.join(",")
    }

    /// `kill -9` of all.
    pub fn kill(&mut self) {
        self.servers.iter_mut().for_each(NatsServer::kill);
    }

    /// Starts all again, on the same ports and with the same streams, after a `kill -9`.
    pub fn restart(&mut self) {
        self.servers.iter_mut().for_each(NatsServer::restart);
    }

    /// `kill -9` of one of them.
    pub fn kill_one(&mut self, number: usize) {
        self.servers[number].kill();
    }

    pub fn restart_one(&mut self, number: usize) {
        self.servers[number].restart();
    }
}

#[derive(Debug)]
struct NatsServer {
    program: PathBuf,
    store: TempDir,
    port: u16,
    arguments: Vec<String>,
    child: Child,
}

impl NatsServer {
    fn start(program: &Path, arguments: Vec<String>) -> Self {
        let store = TempDir::new().unwrap();
        let port = quiet_port();
        let child = spawn(program, store.path(), port, &arguments);
        Self {
            program: program.to_owned(),
            store,
            port,
            arguments,
            child,
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.program, self.store.path(), self.port, &self.arguments);
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(program: &Path, store: &Path, port: u16, arguments: &[String]) -> Child {
    let child = Command::new(program)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(store)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server");
    wait_for("the NATS server", || TcpStream::connect(("127.0.0.1", port)).ok());
    child
}
