//! The proxy configurations of the HTTP guide, word for word, in the proxies they are for.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::{BOTH, BridgeProcess, Client, Events, JSON, eventually, http_client, tool_call};

const GUIDE: &str = include_str!("../../../docs/http.md");

/// The guide's snippet in this language, for this bridge.
fn snippet(language: &str, bridge: SocketAddr) -> String {
    let (_, rest) = GUIDE.split_once(&format!("```{language}\n")).expect("a snippet");
    let (snippet, _) = rest.split_once("```").expect("its end");
    snippet.replace("127.0.0.1:3000", &bridge.to_string())
}

fn installed(program: &str) -> bool {
    let found = Path::new(program).exists();
    let package = program.rsplit('/').next().unwrap();
    if !found {
        test_support::skip(&format!("{program} is missing; hint: apt install {package}"));
    }
    found
}

/// Starts a proxy and uses the bridge through it.
async fn check(
    program: &str,
    arguments: &[&str],
    configuration: impl Fn(&Path, &str) -> String,
    language: &str,
) {
    if !installed(program) {
        return;
    }
    // A process of its own: what it had started itself, it would take for a command.
    let bridge = BridgeProcess::start(&[], &["--session-isolation"]);
    // A proxy is told its port, so it cannot be zero.
    let port = test_support::quiet_port();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proxy.conf");
    let text = configuration(directory.path(), &snippet(language, bridge.address()));
    let text = text.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    std::fs::write(&file, text).unwrap();
    let _proxy = Command::new(program)
        .args(arguments)
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut client = Client {
        url: format!("http://127.0.0.1:{port}/mcp"),
        session: None,
        http: http_client(),
    };
    eventually("the proxy listens", async || {
        client.http.get(&client.url).send().await.is_ok()
    })
    .await;

    client.initialize(json!({ "sampling": {} })).await;
    assert_eq!(client.call("echo", json!({ "text": "through" })).await, "through");
    // The call ends only when its question was answered: if the proxy held the question back, both would wait.
    for id in 1..4 {
        let call = tool_call(json!(id), "ask", json!({ "method": "sampling/createMessage" }));
        let mut events = Events::of(client.post(BOTH, &call).await);
        let question = events.next_json().await;
        assert_eq!(question["method"], "sampling/createMessage");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "said": id } });
        client.post(JSON, &answer).await;
        let answered = events.next_json().await;
        let text = answered["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap()["result"]["said"], id);
    }
    client.delete().await;
    bridge.stop();
}

#[tokio::test]
async fn events_pass_through_nginx_at_once() {
    let configuration = |directory: &Path, location: &str| {
        let place = directory.display();
        format!(
            "daemon off; master_process off; error_log stderr; pid {place}/pid; worker_processes 1;\n\
             events {{ }}\n\
             http {{\n\
             access_log off; client_body_temp_path {place}/body; proxy_temp_path {place}/proxy;\n\
             fastcgi_temp_path {place}/fastcgi; uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;\n\
             server {{ listen 127.0.0.1:8080;\n{location}}}\n}}\n"
        )
    };
    check("/usr/sbin/nginx", &["-e", "stderr", "-c"], configuration, "nginx").await;
}

#[tokio::test]
async fn events_pass_through_haproxy_at_once() {
    check(
        "/usr/sbin/haproxy",
        &["-db", "-f"],
        |_, snippet| snippet.to_owned(),
        "haproxy",
    )
    .await;
}
