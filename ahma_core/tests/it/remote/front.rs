//! `--server-url`: one remote server on stdin and stdout.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
};

use serde_json::json;
use test_support::{Era, Workspace};

use super::{
    ends::{Bridge, dead_address},
    wait_for_complaint,
};
use crate::session::{echo, options};

#[test]
fn a_front_shows_the_remote_server_and_nothing_of_ours() {
    let far = Workspace::new();
    far.write_tool("say.json", &echo("say"));
    let bridge = Bridge::start_in(far, &[]);
    let workspace = Workspace::new();
    workspace.write_tool("ours.json", &echo("ours"));
    for era in Era::BOTH {
        for transport in ["auto", "http"] {
            let mut front = options(&workspace)
                .args(["--server-url", &bridge.url(), "--transport", transport])
                .open(era);
            let names = front.tool_names();
            assert!(
                names.contains(&"say".to_owned()) && !names.contains(&"ours".to_owned()),
                "{names:?}"
            );
            let said = front.tool("say", json!({"format": "hello"}));
            assert_eq!(
                said["structuredContent"]["output"], "hello",
                "{era:?} {transport}"
            );
            front.close_input();
            assert!(front.wait().success());
        }
    }
    let sse = format!("http://{}/mcp/sse", bridge.address());
    let mut front = options(&workspace)
        .args(["--server-url", &sse, "--transport", "sse"])
        .open(Era::Legacy);
    assert!(front.tool_names().contains(&"say".to_owned()));
}

#[test]
fn a_program_stands_in_for_a_server_that_is_away() {
    let workspace = Workspace::new();
    workspace.write_tool("local.json", &echo("local"));
    let dead = format!("http://{}/mcp", dead_address());
    let ourselves = env!("CARGO_BIN_EXE_ahma_mcp");
    for flags in [&["--transport-fallback"][..], &["--transport", "stdio"]] {
        let mut front = options(&workspace)
            .env("AHMA_SERVER_URL", &dead)
            .args(flags)
            .args(["--", ourselves])
            .open(Era::Legacy);
        assert!(front.tool_names().contains(&"local".to_owned()), "{flags:?}");
        if flags == ["--transport-fallback"] {
            wait_for_complaint(&front, "connected by stdio: Streamable HTTP: ");
        }
    }
}

#[test]
fn a_front_uses_what_a_file_says_about_its_server() {
    let far = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", far.local_addr().expect("bound"));
    let workspace = Workspace::new();
    let file = workspace.home().join("mcp.json");
    let entry = json!({"url": url, "headers": {"X-Key": "the key"}});
    std::fs::write(&file, json!({"servers": {"far": entry}}).to_string()).expect("writable");
    let file = file.to_str().expect("plain");
    let start = |url: &str| {
        let flags = ["--server-url", url, "--mcp-config", file];
        let mut front = options(&workspace).args(flags).start();
        front.request("initialize", json!({}));
        front
    };
    let _front = start(&url);
    let (request, _) = far.accept().expect("the front comes");
    let headers = BufReader::new(request).lines().map_while(Result::ok);
    let mut headers = headers.take_while(|line| !line.is_empty());
    assert!(headers.any(|line| line.eq_ignore_ascii_case("x-key: the key")));

    let front = start(&format!("http://{}/mcp", dead_address()));
    wait_for_complaint(&front, "names no server with this address");
}

#[test]
fn what_a_front_cannot_do_is_said() {
    let workspace = Workspace::new();
    let dead = format!("http://{}/mcp", dead_address());
    for (arguments, code, words) in [
        (
            vec!["--server-url", "x.example/mcp"],
            2,
            "write https://x.example/mcp",
        ),
        (
            vec!["--server-url", "ftp://x.example"],
            2,
            "not an http or https address",
        ),
        (
            vec!["--server-url", &dead, "--mode", "http"],
            2,
            "contradicts --mode",
        ),
        (
            vec!["--server-url", &dead, "--transport", "stdio"],
            2,
            "names no program",
        ),
        (
            vec!["--server-url", &dead, "--", "cat"],
            2,
            "--transport-fallback",
        ),
        (vec!["--", "cat"], 2, "--server-url"),
    ] {
        let output = options(&workspace)
            .args(&arguments)
            .command()
            .output()
            .expect("it starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
    let mut front = options(&workspace).args(["--server-url", &dead]).start();
    front.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}));
    assert_eq!(front.wait().code(), Some(1));
    for words in ["Connection refused", "hint:"] {
        wait_for_complaint(&front, words);
    }
}
