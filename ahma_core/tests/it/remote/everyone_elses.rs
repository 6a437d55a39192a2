//! Servers that others wrote, on every transport they have.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use serde_json::json;
use test_support::{Era, Server, ServerOptions, Workspace, quiet_port, test_programs, wait_for};

use super::{mounting, text_of, wait_for_tool};

/// A file that `scripts/test-programs` installs; it does so once.
fn installed(file: &str) -> Option<PathBuf> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().expect("not poisoned");
    let file = test_programs().join(file);
    if file.exists() {
        return Some(file);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/test-programs");
    let done = Command::new(&script).output().expect("a script");
    if done.status.success() {
        return Some(file);
    }
    let why = String::from_utf8_lossy(&done.stderr).into_owned();
    test_support::skip(&format!("scripts/test-programs failed: {why}"));
    None
}

fn everything() -> Option<PathBuf> {
    installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A Python with fastmcp.
fn fastmcp() -> Option<PathBuf> {
    installed("python/bin/python")
}

#[track_caller]
fn start(workspace: &Workspace, program: &Path, script: &Path, kind: &str, port: u16) -> Server {
    let server = ServerOptions::new(program, workspace)
        .args([script.as_os_str(), kind.as_ref()])
        .env("PORT", port.to_string())
        .start();
    wait_for("the server to listen", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    });
    server
}

#[test]
fn the_everything_server_works_on_all_its_transports() {
    let Some(script) = everything() else { return };
    let far = Workspace::new();
    let (http, sse) = (quiet_port(), quiet_port());
    let _servers = [("streamableHttp", http), ("sse", sse)]
        .map(|(kind, port)| start(&far, Path::new("node"), &script, kind, port));
    let servers = json!({
        "http": {"url": format!("http://127.0.0.1:{http}/mcp")},
        "sse": {"type": "sse", "url": format!("http://127.0.0.1:{sse}/sse")},
        "stdio": {"command": "node", "args": [script]},
    });
    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &servers).open(Era::Legacy);
    for name in ["http", "sse", "stdio"] {
        let tool = |tool: &str| format!("{name}_{tool}");
        wait_for_tool(&mut server, &tool("echo"));
        let echoed = server.tool(&tool("echo"), json!({"message": "hi"}));
        assert_eq!(text_of(&echoed), "Echo: hi");
        let weather = server.tool(&tool("get-structured-content"), json!({"location": "New York"}));
        assert!(
            weather["structuredContent"]["temperature"].is_number(),
            "{weather}"
        );
        let wrong = server.call(
            "tools/call",
            json!({"name": tool("get-sum"), "arguments": {"a": "x"}}),
        );
        assert!(
            wrong["error"].is_object() || wrong["result"]["isError"] == true,
            "{wrong}"
        );

        let id = server.request(
            "tools/call",
            json!({
                "name": tool("trigger-long-running-operation"),
                "arguments": {"duration": 1, "steps": 4},
                "_meta": {"progressToken": name},
            }),
        );
        let answer = server.answer(id);
        assert!(text_of(&answer["result"]).contains("completed"), "{answer}");
        let steps: Vec<_> = (server.others(std::time::Duration::from_millis(1)).iter())
            .filter(|message| message["params"]["progressToken"] == name)
            .map(|message| message["params"]["progress"].as_f64())
            .collect();
        assert_eq!(
            steps,
            [1.0, 2.0, 3.0, 4.0].map(Some),
            "{name}: before the answer and in order"
        );
    }
}

#[test]
fn a_fastmcp_server_works_over_http_and_as_a_program() {
    let Some(python) = fastmcp() else { return };
    let far = Workspace::new();
    let script = far.home().join("server.py");
    std::fs::write(&script, FASTMCP_SERVER).expect("writable");
    let port = quiet_port();
    let _server = start(&far, &python, &script, "http", port);
    let servers = json!({
        "http": {"url": format!("http://127.0.0.1:{port}/mcp")},
        "stdio": {"command": python, "args": [script, "stdio"]},
    });
    let workspace = Workspace::new();
    let mut server = mounting(&workspace, &servers).open(Era::Modern);
    for name in ["http", "stdio"] {
        wait_for_tool(&mut server, &format!("{name}_add"));
        let sum = server.tool(&format!("{name}_add"), json!({"a": 2, "b": 3}));
        assert_eq!(sum["structuredContent"]["result"], 5, "{sum}");
        let failed = server.tool(&format!("{name}_fail"), json!({}));
        assert_eq!(failed["isError"], true, "{failed}");
    }
}

const FASTMCP_SERVER: &str = r#"
import os, sys
from fastmcp import FastMCP

mcp = FastMCP("sums")

@mcp.tool
def add(a: int, b: int) -> int:
    return a + b

@mcp.tool
def fail() -> str:
    raise ValueError("not today")

if sys.argv[1] == "http":
    mcp.run(transport="http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
else:
    mcp.run(show_banner=False)
"#;
