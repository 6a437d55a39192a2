//! The bridge as a process, and a bare HTTP/1.1 client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::INITIALIZE;

pub(crate) const JSON: &str = "application/json";

pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Server {
    pub(crate) fn start(bridge: &str, backend: &[String], flags: &[String]) -> Self {
        let mut process = Command::new(bridge)
            .args(["--http-port", "0"])
            .args(flags)
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

    pub(crate) fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        Connection {
            reader: BufReader::new(stream.try_clone().expect("clone")),
            stream,
        }
    }

    pub(crate) fn session(&self) -> String {
        self.try_session().expect("a session")
    }

    /// The id of a new session, `None` if it was refused for now.
    pub(crate) fn try_session(&self) -> Option<String> {
        let head = self.connect().send("POST", JSON, None, INITIALIZE);
        if head.starts_with("HTTP/1.1 503") {
            return None;
        }
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        Some(id.expect(&head).trim().to_owned())
    }

    /// A number the bridge publishes about itself; it needs `--metrics`.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut connection = self.connect();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        connection.stream.write_all(request.as_bytes()).expect("write");
        let mut text = String::new();
        connection.reader.read_to_string(&mut text).expect("metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.trim().parse().expect("number")
    }

    /// Of the bridge alone, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("number")
    }

    /// Of the bridge and everything below it, in KiB; what several share is counted once.
    pub(crate) fn memory_of_all(&self) -> u64 {
        let mut tree = vec![self.process.id()];
        let mut next = 0;
        let mut kilobytes = 0;
        while let Some(&process) = tree.get(next) {
            next += 1;
            let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
            let own = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
            kilobytes += own.unwrap_or(0);
            let threads = std::fs::read_dir(format!("/proc/{process}/task"));
            for thread in threads.into_iter().flatten().flatten() {
                let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
                tree.extend(
                    children
                        .split_whitespace()
                        .filter_map(|id| id.parse::<u32>().ok()),
                );
            }
        }
        kilobytes
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.process.wait().ok();
    }
}

pub(crate) struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Connection {
    /// Posts something that must succeed.
    pub(crate) fn post(&mut self, accept: &str, session: &str, body: &str) {
        let head = self.send("POST", accept, Some(session), body);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }

    /// Sends a request and reads the whole answer; gives back its head.
    pub(crate) fn send(&mut self, method: &str, accept: &str, session: Option<&str>, body: &str) -> String {
        let session = session
            .map(|id| format!("Mcp-Session-Id: {id}\r\n"))
            .unwrap_or_default();
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n{session}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
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
