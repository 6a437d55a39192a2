//! A real NATS server with JetStream, killed when the value is dropped.

use std::{
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{needs, quiet_port, wait_for};

/// One server, which keeps its streams when it is killed and started again.
#[derive(Debug)]
pub struct Nats {
    store: TempDir,
    port: u16,
    arguments: Vec<String>,
    child: Child,
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
        let store = TempDir::new().unwrap();
        let port = quiet_port();
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let child = spawn(store.path(), port, &arguments);
        Some(Self {
            store,
            port,
            arguments,
            child,
        })
    }

    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, on the same port and with the same streams.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.store.path(), self.port, &self.arguments);
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(store: &Path, port: u16, arguments: &[String]) -> Child {
    let child = Command::new("nats-server")
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
