//! A stdio MCP server for tests and measurements that misbehaves on request.
//!
//! Every tool is one behaviour; start flags are behaviours of the process. It speaks both protocol eras.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test program whose business is to misbehave"
)]

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, Write};
use std::process::{Command, Stdio, exit};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Default)]
struct Fake {
    /// Ids the client cancelled.
    cancelled: Mutex<Vec<Value>>,
    subscribed: Mutex<BTreeSet<String>>,
    /// Ids of open `subscriptions/listen` requests.
    listening: Mutex<Vec<Value>>,
    /// Our own requests that wait for the client's answer.
    asked: Mutex<HashMap<String, mpsc::Sender<Value>>>,
}

fn main() {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    if let Some(file) = flags.iter().find_map(|flag| flag.strip_prefix("--count=")) {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .expect("count file");
        writeln!(file, "{}", std::process::id()).expect("count file");
    }
    if has("--die") {
        eprintln!("fake_mcp dies at its start");
        exit(7);
    }
    if let Some(file) = flags.iter().find_map(|flag| flag.strip_prefix("--start-after=")) {
        while std::path::Path::new(file).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let fake = Arc::new(Fake::default());
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if has("--mute") {
            continue;
        }
        fake.receive(message);
    }
    while has("--stubborn") {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// One whole line in one write, so that threads do not mix.
fn send(message: &Value) {
    let mut line = message.to_string();
    line.push('\n');
    raw(line.as_bytes());
}

fn raw(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        exit(0);
    }
}

fn answer(id: &Value, result: Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn notify(method: &str, params: Value) {
    send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

impl Fake {
    fn receive(self: &Arc<Self>, message: Value) {
        let id = message.get("id").cloned();
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => self.request(method, id, &message["params"]),
            (Some("notifications/cancelled"), None) => {
                let id = message["params"]["requestId"].clone();
                self.listening.lock().unwrap().retain(|open| *open != id);
                self.cancelled.lock().unwrap().push(id);
            }
            (None, Some(id)) => {
                if let Some(tx) = self.asked.lock().unwrap().remove(&id.to_string()) {
                    tx.send(message).ok();
                }
            }
            _ => {}
        }
    }

    fn request(self: &Arc<Self>, method: &str, id: Value, params: &Value) {
        match method {
            "initialize" if params["clientInfo"].is_null() => send(&json!({
                "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "clientInfo is missing" }
            })),
            "initialize" => {
                let asked = params["protocolVersion"].as_str().unwrap_or_default();
                let version = if asked < "2025-11-25" { asked } else { "2025-11-25" };
                answer(
                    &id,
                    json!({
                        "protocolVersion": version,
                        "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
                        "serverInfo": { "name": "fake_mcp", "version": "1" },
                        "instructions": scope(),
                    }),
                );
            }
            "server/discover" => answer(
                &id,
                json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"] }),
            ),
            "ping" => answer(&id, json!({})),
            "tools/list" => answer(
                &id,
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
            ),
            "tools/call" => self.call(id, params),
            "resources/subscribe" if params["uri"] == "x:missing" => send(&json!({
                "jsonrpc": "2.0", "id": id, "error": { "code": -32002, "message": "no such resource" }
            })),
            "resources/subscribe" => {
                self.subscribed.lock().unwrap().insert(params["uri"].to_string());
                answer(&id, json!({}));
            }
            "resources/unsubscribe" => {
                self.subscribed.lock().unwrap().remove(&params["uri"].to_string());
                answer(&id, json!({}));
            }
            "subscriptions/listen" => {
                self.listening.lock().unwrap().push(id.clone());
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                notify(
                    "notifications/subscriptions/acknowledged",
                    json!({ "_meta": meta, "notifications": {} }),
                );
            }
            _ => send(&json!({
                "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no such method" }
            })),
        }
    }

    fn call(self: &Arc<Self>, id: Value, params: &Value) {
        let arguments = params["arguments"].clone();
        let token = params["_meta"]["progressToken"].clone();
        let number = |name: &str| arguments[name].as_u64().unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            "echo" => answer(&id, text(arguments["text"].as_str().unwrap_or_default())),
            "who" => answer(
                &id,
                text(json!({ "pid": std::process::id(), "scope": scope() }).to_string()),
            ),
            "env" => answer(
                &id,
                text(std::env::var(arguments["name"].as_str().unwrap_or_default()).unwrap_or_default()),
            ),
            "meta" => answer(&id, text(params["_meta"].to_string())),
            "slow" => {
                let wait = Duration::from_millis(number("ms"));
                std::thread::spawn(move || {
                    std::thread::sleep(wait);
                    answer(&id, text("slept"));
                });
            }
            "silent" => {}
            "crash" => exit(9),
            "crash_mid_answer" => {
                raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"con"#).as_bytes());
                exit(9);
            }
            "close_stdout" => {
                // The process lives on, but will never say anything again.
                let null = std::fs::OpenOptions::new()
                    .write(true)
                    .open("/dev/null")
                    .expect("/dev/null");
                rustix::stdio::dup2_stdout(&null).expect("dup2");
            }
            "flood" => {
                for count in 0..number("count") {
                    notify(
                        "notifications/message",
                        json!({ "level": "info", "data": format!("line {count}") }),
                    );
                }
                answer(&id, text("flooded"));
            }
            "garbage" => {
                raw(b"this is not json\n\n{\"half\":\n\xff\xfe\x00\n[1,2]\n{}\n");
                answer(&id, text("after garbage"));
            }
            "twice" => {
                answer(&id, text("first"));
                answer(&id, text("second"));
            }
            "huge" => answer(&id, text("x".repeat(number("bytes") as usize))),
            "endless_line" => {
                std::thread::spawn(|| {
                    loop {
                        raw(&[b'y'; 65536]);
                    }
                });
            }
            "progress" => {
                for step in 1..=number("steps") {
                    notify(
                        "notifications/progress",
                        json!({ "progressToken": token, "progress": step }),
                    );
                }
                answer(&id, text("progressed"));
            }
            "late_progress" => {
                answer(&id, text("started"));
                notify(
                    "notifications/progress",
                    json!({ "progressToken": token, "progress": 100, "message": "done" }),
                );
            }
            "ask" => {
                let (tx, rx) = mpsc::channel();
                let ask_id = json!(format!("ask-{id}"));
                self.asked.lock().unwrap().insert(ask_id.to_string(), tx);
                send(&json!({ "jsonrpc": "2.0", "id": ask_id, "method": arguments["method"], "params": {} }));
                if arguments["cancel"] == true {
                    notify("notifications/cancelled", json!({ "requestId": ask_id }));
                }
                std::thread::spawn(move || {
                    let heard = rx.recv().unwrap_or_default();
                    answer(&id, text(heard.to_string()));
                });
            }
            "spawn" => {
                let child = Command::new("sleep")
                    .arg("1000")
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .spawn();
                answer(&id, text(child.expect("sleep").id().to_string()));
            }
            "list_changed" => {
                notify("notifications/tools/list_changed", json!({}));
                for open in self.listening.lock().unwrap().iter() {
                    let meta = json!({ "io.modelcontextprotocol/subscriptionId": open });
                    notify("notifications/tools/list_changed", json!({ "_meta": meta }));
                }
                answer(&id, text("changed"));
            }
            "log" => {
                notify(
                    "notifications/message",
                    json!({ "level": "info", "data": arguments["text"] }),
                );
                answer(&id, text("logged"));
            }
            "log_related" => {
                let log = |data: &str| {
                    let meta = json!({ "ahma/relatedRequestId": id });
                    notify(
                        "notifications/message",
                        json!({ "level": "info", "data": data, "_meta": meta }),
                    );
                };
                log("before");
                answer(&id, text("logged"));
                log("after");
            }
            "touch" => {
                notify(
                    "notifications/resources/updated",
                    json!({ "uri": arguments["uri"] }),
                );
                answer(&id, text("touched"));
            }
            "touch_own" => {
                let meta = json!({ "ahma/client": params["_meta"]["ahma/client"] });
                notify(
                    "notifications/resources/updated",
                    json!({ "uri": arguments["uri"], "_meta": meta }),
                );
                answer(&id, text("touched"));
            }
            "cancelled" => answer(&id, text(json!(*self.cancelled.lock().unwrap()).to_string())),
            "subscribed" => answer(&id, text(json!(*self.subscribed.lock().unwrap()).to_string())),
            _ => send(
                &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "no such tool" } }),
            ),
        }
    }
}

fn scope() -> String {
    std::env::var("AHMA_SANDBOX_SCOPE").unwrap_or_default()
}
