//! `--server-url`: one remote server on stdin and stdout.

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
    }
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
