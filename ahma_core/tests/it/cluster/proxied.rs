//! Front ends behind HAProxy, with the configuration of the documentation.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::{Era, HttpServer, TEST_TIMEOUT, needs, quiet_port, session_at, sessionless_at, wait_for};

use super::pool::{Cluster, ended, printed, start, whole_output};

const GUIDE: &str = include_str!("../../../../docs/cluster.md");

/// Names of the front ends in the guide.
const SERVERS: [&str; 3] = ["one", "two", "three"];

/// HAProxy in front of three front ends.
struct Proxy {
    child: Child,
    address: String,
    directory: tempfile::TempDir,
}

impl Proxy {
    fn start(ports: [u16; 3]) -> Option<Self> {
        if !needs("/usr/sbin/haproxy", &["-v"], "apt-get install haproxy") {
            return None;
        }
        let address = format!("127.0.0.1:{}", quiet_port());
        let (_, rest) = GUIDE.split_once("```haproxy\n").unwrap();
        let (guide, _) = rest.split_once("```").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("stats");
        assert!(guide.contains("stats socket /run"), "{guide}");
        let mut text = guide.replace("/run/haproxy/admin.sock", socket.to_str().unwrap());
        text = text.replace("127.0.0.1:8080", &address);
        // Not a second: the tests wait for it.
        text = text.replace("inter 1s", "inter 200ms");
        assert!(text.contains("timeout connect"), "{text}");
        // Else a check would have no more than that.
        text = text.replace(
            "    timeout connect",
            "    timeout check 10s\n    timeout connect",
        );
        for (number, port) in (1..).zip(ports) {
            let theirs = format!("10.0.0.{number}:3000");
            assert!(text.contains(&theirs), "{theirs}");
            text = text.replace(&theirs, &format!("127.0.0.1:{port}"));
        }
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, text).unwrap();
        let child = Command::new("/usr/sbin/haproxy")
            .args(["-db", "-f"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("HAProxy", || TcpStream::connect(&address).ok());
        Some(Self {
            child,
            address,
            directory,
        })
    }

    /// Requests that each front end got so far.
    fn shares(&self) -> Vec<u64> {
        self.column("stot")
    }

    /// Requests that wait for an answer.
    fn open_requests(&self) -> Vec<u64> {
        self.column("scur")
    }

    fn column(&self, wanted: &str) -> Vec<u64> {
        let text = self.tell("show stat");
        let mut lines = text.lines();
        let names = lines.next().unwrap().trim_start_matches("# ").split(',');
        let place = names.into_iter().position(|name| name == wanted).unwrap();
        let of_servers = lines.map(|line| line.split(',').collect::<Vec<_>>());
        of_servers
            .filter(|columns| columns.len() > place && SERVERS.contains(&columns[1]))
            .map(|columns| columns[place].parse().unwrap())
            .collect()
    }

    /// `maint` sends new requests elsewhere, `ready` takes the front end back.
    fn set_state(&self, number: usize, state: &str) {
        let said = self.tell(&format!("set server ahma/{} state {state}", SERVERS[number]));
        assert_eq!(said.trim(), "");
    }

    fn tell(&self, command: &str) -> String {
        let path: PathBuf = self.directory.path().join("stats");
        let mut socket = UnixStream::connect(path).unwrap();
        socket.write_all(format!("{command}\n").as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    }

    /// The front end that gets what `ask` asks.
    fn taker<T>(&self, ask: impl FnOnce() -> T) -> (usize, T) {
        let before = self.shares();
        let answer = ask();
        let after = self.shares();
        let more: Vec<usize> = (0..3).filter(|&number| after[number] > before[number]).collect();
        assert_eq!(more.len(), 1, "{before:?} {after:?}");
        (more[0], answer)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that repeats a request that was cut off, and notices that at once.
struct Caller {
    address: String,
    headers: String,
    meta: Value,
}

impl Caller {
    fn new(address: &str, era: Era) -> Self {
        let mut caller = Self {
            address: address.to_owned(),
            headers: String::new(),
            meta: json!({}),
        };
        match era {
            Era::Legacy => {
                let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                                    "clientInfo": {"name": "caller", "version": "1"}});
                let (head, _) = caller.post("initialize", params).unwrap();
                let (_, after) = head.split_once("mcp-session-id: ").unwrap();
                let session = after.lines().next().unwrap().trim();
                caller.headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
            }
            Era::Modern => {
                caller.headers =
                    "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: await\r\n"
                        .to_owned();
                let name = |key: &str| format!("io.modelcontextprotocol/{key}");
                caller.meta[name("protocolVersion")] = json!("2026-07-28");
                caller.meta[name("clientInfo")] = json!({"name": "caller", "version": "1"});
                caller.meta[name("clientCapabilities")] = json!({});
            }
        }
        caller
    }

    /// The output of an operation at its end, and the answers after which the request was repeated.
    fn awaited(&self, id: &str) -> (String, Vec<Value>) {
        let arguments = json!({"operation_ids": [id], "timeout_seconds": 50});
        let params = json!({"name": "await", "arguments": arguments, "_meta": self.meta});
        let mut cut_off = Vec::new();
        loop {
            let answer = self.post("tools/call", params.clone()).map(|(_, answer)| answer);
            let answer = answer.unwrap_or_default();
            let output = &answer["result"]["structuredContent"]["operations"][0]["output"];
            match output.as_str() {
                Some(output) => return (output.to_owned(), cut_off),
                None => cut_off.push(answer),
            }
        }
    }

    /// Head and body of an answer; nothing if the connection was lost.
    fn post(&self, method: &str, params: Value) -> Option<(String, Value)> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut connection = TcpStream::connect(&self.address).unwrap();
        connection.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        write!(
            connection,
            "POST /mcp HTTP/1.0\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\n{}content-length: {}\r\n\r\n{body}",
            self.address,
            self.headers,
            body.len()
        )
        .ok()?;
        let mut text = String::new();
        connection.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        // An answer is one JSON text, or the last event of a stream.
        let json = body.lines().rev().find_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str(line).ok()
        });
        Some((head.to_ascii_lowercase(), json?))
    }
}

fn front_end_on(cluster: &Cluster, port: u16) -> HttpServer {
    let port = port.to_string();
    HttpServer::start(
        &cluster
            .options()
            .args(["--mode", "http", "--http-port", &port, "--drain", "0s"]),
    )
}

#[test]
fn a_client_starts_on_one_front_end_follows_on_another_and_cancels_on_a_third() {
    let Some(cluster) = Cluster::start() else { return };
    let ports = [quiet_port(), quiet_port(), quiet_port()];
    let _workers = [cluster.worker(), cluster.worker()];
    let _fronts = ports.map(|port| front_end_on(&cluster, port));
    let Some(proxy) = Proxy::start(ports) else { return };
    // Without a session every request goes to the next; sessions stay where they began.
    let mut client = sessionless_at(&proxy.address);
    let mut sessions: Vec<_> = (0..3).map(|_| session_at(&proxy.address)).collect();
    for has_sessions in [false, true] {
        let step = |number: usize| if has_sessions { number } else { 0 };
        let clients = if has_sessions {
            &mut sessions[..]
        } else {
            std::slice::from_mut(&mut client)
        };
        let long = start(&mut clients[step(0)], "seq 30000");
        let (first, id) = proxy.taker(|| start(&mut clients[step(0)], "echo begun; sleep 1000"));
        let (second, ()) = proxy.taker(|| printed(&mut clients[step(1)], &id, "begun"));
        let cancel = json!({"operation_id": id});
        let (third, stopped) = proxy.taker(|| clients[step(2)].tool("cancel", cancel));
        assert_eq!(stopped["structuredContent"]["status"], "cancelled", "{stopped}");
        assert!(
            first != second && second != third && third != first,
            "{first} {second} {third}"
        );
        // Late, and page by page from all of them or from one that has seen nothing of it.
        let reader = &mut clients[step(2)];
        assert_eq!(ended(reader, &long)["status"], "completed");
        let expected: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
        assert!(whole_output(reader, &long) == expected);
    }
}

#[test]
fn front_ends_are_restarted_one_after_the_other_and_no_result_is_lost() {
    let Some(cluster) = Cluster::start() else { return };
    let ports = [quiet_port(), quiet_port(), quiet_port()];
    let _workers = [
        cluster.worker_with(&["--max-operations", "12"]),
        cluster.worker_with(&["--max-operations", "12"]),
    ];
    let mut fronts = ports.map(|port| Some(front_end_on(&cluster, port)));
    let Some(proxy) = Proxy::start(ports) else { return };
    let mut client = sessionless_at(&proxy.address);
    let command = |number: usize| format!("echo {number}; until [ -e go ]; do sleep 0.1; done; echo end");
    let ids: Vec<String> = (0..20)
        .map(|number| start(&mut client, &command(number)))
        .collect();
    let (asking, asked) = mpsc::channel();
    let waiting: Vec<_> = ids
        .into_iter()
        .enumerate()
        .map(|(number, id)| {
            let (address, asking) = (proxy.address.clone(), asking.clone());
            std::thread::spawn(move || {
                // A session of the older protocol goes on at the front ends that are left.
                let caller = Caller::new(&address, if number % 2 == 0 { Era::Modern } else { Era::Legacy });
                asking.send(()).unwrap();
                caller.awaited(&id)
            })
        })
        .collect();
    waiting.iter().for_each(|_| asked.recv().unwrap());
    wait_for("requests at every front end", || {
        proxy.open_requests().iter().all(|open| *open > 0).then_some(())
    });
    for (number, port) in ports.into_iter().enumerate() {
        proxy.set_state(number, "maint");
        let mut old = fronts[number].take().unwrap();
        old.process().signal(Signal::TERM);
        old.process().wait();
        fronts[number] = Some(front_end_on(&cluster, port));
        proxy.set_state(number, "ready");
    }
    fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    let mut repeated = 0;
    for (number, thread) in waiting.into_iter().enumerate() {
        let (output, cut_off) = thread.join().unwrap();
        assert_eq!(output, format!("{number}\nend\n"));
        // Each restart cuts a request off once at most.
        assert!(cut_off.len() <= 3, "{number}: {cut_off:#?}");
        repeated += cut_off.len();
    }
    assert!(repeated > 0, "no request was cut off");
}
