//! Front ends behind HAProxy.

use std::{
    fmt::Write as _,
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::json;
use test_support::{HttpServer, needs, quiet_port, sessionless_at, wait_for};

use super::pool::{Cluster, ended, printed, start, whole_output};

/// HAProxy in front of them, one request for each in turn.
struct Proxy {
    child: Child,
    address: String,
    _directory: tempfile::TempDir,
}

impl Proxy {
    fn start(ports: &[u16]) -> Option<Self> {
        if !needs("/usr/sbin/haproxy", &["-v"], "apt-get install haproxy") {
            return None;
        }
        let address = format!("127.0.0.1:{}", quiet_port());
        let mut text = format!(
            "defaults\n  mode http\n  timeout connect 2s\n  timeout client 120s\n  timeout server 120s\n  option http-no-delay\n  \
             option redispatch 1\n  retries 3\n  retry-on conn-failure empty-response\nfrontend mcp\n  bind {address}\n  \
             default_backend fronts\nbackend fronts\n  balance roundrobin\n  option httpchk\n  http-check send meth GET uri /healthz ver HTTP/1.1 hdr Host localhost\n"
        );
        for (number, port) in ports.iter().enumerate() {
            let _ = writeln!(
                text,
                "  server f{number} 127.0.0.1:{port} check inter 200ms fall 1 rise 1"
            );
        }
        let directory = tempfile::tempdir().unwrap();
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
            _directory: directory,
        })
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
fn requests_of_one_client_go_to_different_front_ends() {
    let Some(cluster) = Cluster::start() else { return };
    let ports = [quiet_port(), quiet_port(), quiet_port()];
    let _workers = [cluster.worker(), cluster.worker()];
    let _fronts = ports.map(|port| front_end_on(&cluster, port));
    let Some(proxy) = Proxy::start(&ports) else { return };
    let mut client = sessionless_at(&proxy.address);
    let long = start(&mut client, "seq 30000");
    let open = start(&mut client, "echo begun; sleep 1000");
    printed(&mut client, &open, "begun");
    let stopped = client.tool("cancel", json!({"operation_id": open}));
    assert_eq!(stopped["structuredContent"]["status"], "cancelled", "{stopped}");
    assert_eq!(ended(&mut client, &long)["status"], "completed");
    let expected: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
    assert!(whole_output(&mut client, &long) == expected);
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
    let Some(proxy) = Proxy::start(&ports) else { return };
    let mut client = sessionless_at(&proxy.address);
    let command = |number: usize| format!("echo {number}; until [ -e go ]; do sleep 0.1; done; echo end");
    let ids: Vec<String> = (0..20)
        .map(|number| start(&mut client, &command(number)))
        .collect();
    let waiting: Vec<_> = ids
        .iter()
        .map(|id| {
            let (mut client, id) = (sessionless_at(&proxy.address), id.clone());
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
