//! Admission of connections without authentication. In these tests whatever the test starts runs below the bridge,
//! as a command does.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::Stdio;

use ahma_http_bridge::{AuthSettings, Secret, TokenSource};
use serde_json::json;
use tokio::process::Command;

use crate::harness::{Bridge, BridgeProcess};

/// The answer that a program below us gets.
async fn asked_from_below(address: SocketAddr, headers: &str) -> String {
    let script = format!(
        "exec 3<>/dev/tcp/{}/{}; printf 'GET /healthz HTTP/1.0\\r\\nhost: localhost\\r\\n{headers}\\r\\n' >&3; cat <&3",
        address.ip(),
        address.port()
    );
    let output = Command::new("bash").args(["-c", &script]).output().await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn what_runs_below_the_bridge_may_not_use_it() {
    let bridge = Bridge::shared().await;
    let answer = asked_from_below(bridge.address, "").await;
    assert!(answer.starts_with("HTTP/1.0 403 "), "{answer}");
    assert!(
        answer.contains("comes from a command") && answer.contains("--auth token"),
        "{answer}"
    );
    // We may, before and after.
    bridge.session().await.call("echo", json!({ "text": "hi" })).await;
    bridge.stop().await;
}

#[tokio::test]
async fn with_a_token_no_connection_is_checked() {
    let token = AuthSettings::Token(TokenSource::Single(Secret::new("sesame")));
    let bridge = Bridge::start(&[], |settings| settings.auth = token).await;
    let answer = asked_from_below(bridge.address, "").await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    bridge.stop().await;
}

#[tokio::test]
async fn what_runs_beside_the_bridge_may_use_it_by_any_way_to_hold_a_socket() {
    let bridge = BridgeProcess::start(&[], &[]);
    let answer = asked_from_below(bridge.address(), "").await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    // One process connects, another asks.
    let mut connection = TcpStream::connect(bridge.address()).unwrap();
    let heir = connection.as_fd().try_clone_to_owned().unwrap();
    let mut child = Command::new("sh")
        .args([
            "-c",
            "printf 'GET /healthz HTTP/1.0\\r\\nhost: localhost\\r\\n\\r\\n' >&0",
        ])
        .stdin(Stdio::from(heir))
        .spawn()
        .unwrap();
    child.wait().await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    // Many at once, so that they are found by their numbers.
    let mut many: Vec<TcpStream> = (0..50)
        .map(|_| TcpStream::connect(bridge.address()).unwrap())
        .collect();
    for connection in &mut many {
        connection
            .write_all(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    }
    bridge.stop();
}
