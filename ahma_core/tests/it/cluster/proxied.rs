//! Front ends behind HAProxy, with the configuration of the documentation.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::json;
use test_support::{HttpServer, needs, quiet_port, session_at, sessionless_at, wait_for};

use super::pool::{Cluster, ended, printed, start, whole_output};

const GUIDE: &str = include_str!("../../../../docs/cluster.md");

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
        let mut text = format!("global\n    stats socket {}\n{guide}", socket.display());
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
        wait_for("HAProxy", || std::net::TcpStream::connect(&address).ok());
        Some(Self {
            child,
            address,
            directory,
        })
    }

    /// Requests that each front end got so far.
    fn shares(&self) -> Vec<u64> {
        let path: PathBuf = self.directory.path().join("stats");
        let mut socket = UnixStream::connect(path).unwrap();
        socket.write_all(b"show stat\n").unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let mut lines = text.lines();
        let names = lines.next().unwrap().trim_start_matches("# ").split(',');
        let total = names.into_iter().position(|name| name == "stot").unwrap();
        let servers = ["one", "two", "three"];
        let of_servers = lines.map(|line| line.split(',').collect::<Vec<_>>());
        of_servers
            .filter(|columns| columns.len() > total && servers.contains(&columns[1]))
            .map(|columns| columns[total].parse().unwrap())
            .collect()
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
    let waiting: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(number, id)| {
            // A session of the older protocol goes on at the front ends that are left.
            let mut client = match number % 2 {
                0 => sessionless_at(&proxy.address),
                _ => session_at(&proxy.address),
            };
            let id = id.clone();
            std::thread::spawn(move || {
                let arguments = json!({"operation_ids": [id], "timeout_seconds": 50});
                // Clients repeat a request whose connection was lost.
                for _ in 0..6 {
                    let params = json!({"name": "await", "arguments": arguments});
                    let number = client.request("tools/call", params);
                    let answer = client.answer_within(number, Duration::from_secs(10));
                    if let Some(answer) = answer
                        && answer["result"]["structuredContent"]["operations"][0]["status"] == "completed"
                    {
                        return answer["result"]["structuredContent"]["operations"][0]["output"].clone();
                    }
                }
                panic!("{id} was never answered");
            })
        })
        .collect();
    for (front, port) in fronts.iter_mut().zip(ports) {
        let mut old = front.take().unwrap();
        old.process().signal(Signal::TERM);
        old.process().wait();
        *front = Some(front_end_on(&cluster, port));
    }
    fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    for (number, thread) in waiting.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap(), format!("{number}\nend\n"));
    }
}
