//! Every program of the workspace as an external process: it helps, names its version, and does its basic job.
//!
//! All else they do is tested in their own crates.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test is a panic, and a skipped one says why"
)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use test_support::Workspace;

const PROGRAMS: [&str; 5] = [
    "ahma_mcp",
    "ahma_validate",
    "ahma_list_tools",
    "generate_tool_schema",
    "ahma_http_bridge",
];

/// Path of a program. Those of other crates are there only if the whole workspace was built.
fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_ahma_mcp")).with_file_name(name);
    test_support::needs(&path, &["--version"], "cargo build --workspace --bins").then_some(path)
}

/// Runs a program in a scope of its own with one tool, `say`.
fn run(name: &str, arguments: &[&str]) -> Option<Output> {
    let workspace = Workspace::new();
    let say = serde_json::json!({"name": "say", "command": "echo", "description": "Says a word."});
    workspace.write_tool("say.json", &say);
    let output = Command::new(program(name)?)
        .args(arguments)
        .current_dir(workspace.scope())
        .env("HOME", workspace.home())
        .env("AHMA_TOOLS_DIR", workspace.tools())
        .output()
        .expect("it starts");
    Some(output)
}

/// That it ended well and printed these words.
#[track_caller]
fn assert_prints(name: &str, arguments: &[&str], words: &str) {
    let Some(output) = run(name, arguments) else {
        return;
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {complained}");
    assert!(
        printed.contains(words),
        "{name} {arguments:?} lacks {words:?}: {printed}"
    );
}

#[test]
fn each_program_helps_and_names_its_version() {
    for name in PROGRAMS {
        assert_prints(name, &["--help"], &format!("Usage: {name}"));
        let version = format!("{name} {}", env!("CARGO_PKG_VERSION"));
        assert_prints(name, &["--version"], &version);
    }
}

#[test]
fn each_program_does_its_job() {
    let server = env!("CARGO_BIN_EXE_ahma_mcp");
    assert_prints("ahma_mcp", &["--mode", "list-tools"], r#""name": "say""#);
    assert_prints("ahma_mcp", &["run", "say"], "\n");
    assert_prints("ahma_list_tools", &["--", server], "say");
    assert_prints("generate_tool_schema", &["--print"], r#""$schema""#);
    assert_prints("ahma_validate", &[".ahma/tools"], "no problems");
}

#[test]
fn each_program_refuses_what_it_does_not_know() {
    for name in PROGRAMS {
        if let Some(output) = run(name, &["--no-such-flag"]) {
            let complained = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name}: {complained}");
            assert!(complained.contains("--no-such-flag"), "{name}: {complained}");
        }
    }
}
