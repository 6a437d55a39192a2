//! The real binary as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc;

use rustix::process::Signal;

use super::{Client, TEST_TIMEOUT, fake_mcp, http_client};

/// The real binary as a process of its own, for what can only be seen from outside.
pub(crate) struct BridgeProcess {
    process: std::process::Child,
    pub(crate) url: String,
    stderr: std::thread::JoinHandle<String>,
}

impl BridgeProcess {
    pub(crate) fn start(env: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        command.envs(env.iter().copied());
        Self::start_command(command, flags, read_all)
    }

    /// One whose standard error stays open, and is not read once it listens.
    pub(crate) fn start_unread(flags: &[&str]) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(command, flags, |mut stderr, tx| {
            let mut lines = stderr.by_ref().lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| tx.send(line).is_ok()) {}
            std::mem::forget(stderr);
            String::new()
        })
    }

    /// One that may open no more files than `ulimit` says, as in `-Sn 100`.
    pub(crate) fn start_limited(ulimit: &str, flags: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("ulimit {ulimit}; exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(shell, flags, read_all)
    }

    /// One that ends when its terminal goes away, also where the tests were told to live on.
    pub(crate) fn start_attached() -> Self {
        let mut command = Command::new("env");
        command
            .arg("--default-signal=HUP")
            .arg(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(command, &[], read_all)
    }

    /// One that lives on when its terminal goes away.
    pub(crate) fn start_detached() -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(shell, &[], read_all)
    }

    /// The kernel's view of it.
    pub(crate) fn status(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap()
    }

    fn start_command(
        mut command: Command,
        flags: &[&str],
        read: impl FnOnce(BufReader<ChildStderr>, mpsc::Sender<String>) -> String + Send + 'static,
    ) -> Self {
        let mut process = command
            .args(["--http-port", "0"])
            .args(flags)
            .arg("--")
            .arg(fake_mcp())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (tx, lines) = mpsc::channel();
        let stderr = std::thread::spawn(move || read(stderr, tx));
        let url = loop {
            let line = lines
                .recv_timeout(TEST_TIMEOUT)
                .expect("the bridge says where it listens");
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.to_owned();
            }
        };
        Self { process, url, stderr }
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            url: self.url.clone(),
            session: None,
            http: http_client(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.url
            .trim_start_matches("http://")
            .trim_end_matches("/mcp")
            .parse()
            .unwrap()
    }

    /// Its resident memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.process.id())).unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Ends it in a way it cannot notice.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends it and gives everything it wrote to standard error.
    pub(crate) fn stop(self) -> String {
        self.stop_by(Signal::TERM)
    }

    pub(crate) fn stop_by(mut self, signal: Signal) -> String {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
        let ended = test_support::wait_for("the end of the bridge", || self.process.try_wait().unwrap());
        assert!(ended.success(), "{ended}");
        let mut stdout = String::new();
        self.process
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        assert_eq!(stdout, "", "standard output is for data");
        self.stderr.join().unwrap()
    }
}

/// Everything there is to read, each line told at once.
fn read_all(stderr: BufReader<ChildStderr>, tx: mpsc::Sender<String>) -> String {
    let lines = stderr.lines().map_while(Result::ok);
    let lines = lines.inspect(|line| drop(tx.send(line.clone())));
    lines.collect::<Vec<_>>().join("\n")
}
