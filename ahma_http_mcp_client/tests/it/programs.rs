//! Servers that are programs, here a shell script.

use std::path::Path;

use ahma_http_mcp_client::{
    RemoteError, RemoteServers, ServerState, Step,
    config::{ServerConfig, StdioCommand, TransportChoice},
    inspect,
};
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{ready, server, settings, tool_names, until},
    remote::call_of,
};

/// Answers the handshake; `tools/call` writes what it sees of the environment, and `die` ends it.
const SCRIPT: &str = r#"
sleep 1000 & echo $! > "$1/grandchild"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"env","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"tools/call"'*'"die"'*) exit 3;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$id" "$GIVEN-${CARGO_MANIFEST_DIR:-clean}";;
  esac
done
"#;

pub(crate) fn program(name: &str, script: &str, dir: &Path) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        transport: TransportChoice::Auto,
        http: None,
        stdio: Some(StdioCommand {
            program: "sh".to_owned(),
            args: vec![
                "-c".to_owned(),
                script.to_owned(),
                "sh".to_owned(),
                dir.display().to_string(),
            ],
            env: [("GIVEN".to_owned(), "yes".to_owned())].into(),
            working_directory: None,
        }),
    }
}

fn is_alive(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
        Ok(stat) => !stat.contains(") Z "),
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_program_is_served_restarted_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let servers = RemoteServers::start(vec![program("sh", SCRIPT, dir.path())], settings(&dir));
    assert_eq!(tool_names(&ready(&servers, "sh").await), ["env"]);
    let never = CancellationToken::new();
    let result = servers
        .call("sh", call_of("env", serde_json::json!({})), None, &never)
        .await
        .unwrap();
    let text = serde_json::to_string(&crate::remote::text_of(result).content).unwrap();
    assert!(text.contains("yes-clean"), "our environment leaked: {text}");

    let first = std::fs::read_to_string(dir.path().join("grandchild")).unwrap();
    servers
        .call("sh", call_of("die", serde_json::json!({})), None, &never)
        .await
        .unwrap_err();
    until(&servers, "sh", "the loss", |state| {
        !matches!(state, ServerState::Ready { .. })
    })
    .await;
    servers
        .call("sh", call_of("env", serde_json::json!({})), None, &never)
        .await
        .unwrap();
    let second = std::fs::read_to_string(dir.path().join("grandchild")).unwrap();
    assert_ne!(first, second);
    servers.shutdown().await;
    for pid in [first, second] {
        test_support::wait_for("the grandchild to be gone", || (!is_alive(&pid)).then_some(()));
    }
}

#[tokio::test]
async fn a_program_that_fails_leaves_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let failing = program("bad", "echo no database >&2; exit 1", dir.path());
    let error = inspect(&failing, &settings(&dir)).await.unwrap_err().to_string();
    assert!(
        error.contains("stdio: ") && error.ends_with("its last output: no database"),
        "{error}"
    );
    let mut missing = failing;
    missing.stdio.as_mut().unwrap().program = "/no/such/program".to_owned();
    let error = inspect(&missing, &settings(&dir)).await.unwrap_err().to_string();
    assert!(error.contains("cannot start `/no/such/program`"), "{error}");
}

#[tokio::test]
async fn a_program_is_the_last_resort_of_an_address() {
    let dir = tempfile::tempdir().unwrap();
    let dead = test_support::quiet_port();
    let mut config = server("both", &format!("http://127.0.0.1:{dead}/mcp"));
    let RemoteError::Connect { attempts, .. } = inspect(&config, &settings(&dir)).await.unwrap_err() else {
        panic!("no login is involved")
    };
    assert_eq!(attempts.len(), 1, "a dead host is not tried twice: {attempts:?}");
    config.stdio = program("both", SCRIPT, dir.path()).stdio;
    let seen = inspect(&config, &settings(&dir)).await.unwrap();
    assert_eq!(seen.report.step, Step::Stdio);
    assert_eq!(seen.report.attempts.len(), 2);
}

#[tokio::test]
async fn a_program_that_dies_as_soon_as_it_is_ready_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let starts = dir.path().join("starts");
    let script = SCRIPT
        .replace("sleep 1000 &", "echo start >> \"$1/starts\"; true &")
        .replace(r#"}}]}}\n' "$id";;"#, r#"}}]}}\n' "$id"; exit 0;;"#);
    assert!(script.contains("exit 0"));
    let servers = RemoteServers::start(vec![program("sh", &script, dir.path())], settings(&dir));
    let failed = |state: &ServerState| matches!(state, ServerState::Failed { .. });
    until(&servers, "sh", "it to be given up", failed).await;
    let started = std::fs::read_to_string(starts).unwrap().lines().count();
    assert!((2..=6).contains(&started), "{started}");
    servers.shutdown().await;
}
