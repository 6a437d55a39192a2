//! Hints about refusals as real programs cause them: every path, after failures and behind pipes, own means first.

use std::fs;

use serde_json::json;
use test_support::{Era, Server, ServerOptions, Workspace, wait_for};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ahma_mcp");

fn run(server: &mut Server, tool: &str, command: &str) -> String {
    let result = server.tool(tool, json!({ "command": command }));
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn open(workspace: &Workspace, tier: &str) -> Server {
    ServerOptions::new(PROGRAM, workspace)
        .with_defaults()
        .args(["--sandbox-tier", tier])
        .open(Era::Legacy)
}

#[test]
fn refused_paths_are_named_after_failures_and_behind_pipes() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let secret = workspace.home().join("notes/secret");
        fs::create_dir_all(secret.parent().unwrap()).unwrap();
        fs::write(&secret, "key").unwrap();
        let secret = secret.display();
        let server = &mut open(&workspace, tier);
        for (command, named) in [
            (format!("cat {secret}"), vec![secret.to_string()]),
            (format!("cat {secret} | cat"), vec![secret.to_string()]),
            (
                "echo x > /etc/ahma-a | cat".to_owned(),
                vec!["/etc/ahma-a".to_owned()],
            ),
            (
                "touch /etc/ahma-a /usr/ahma-b /opt/ahma-c/d".to_owned(),
                vec!["/etc/ahma-a".to_owned(), "/usr/ahma-b".to_owned()],
            ),
        ] {
            let told = run(server, "sandboxed_shell", &command);
            let hint = told.lines().find(|line| line.starts_with("hint: "));
            let hint = hint.unwrap_or_else(|| panic!("{tier} {command}: {told}"));
            assert!(
                named.iter().all(|path| hint.contains(path)),
                "{tier} {command}: {hint}"
            );
            let here = hint.find("Open here: ").unwrap_or_else(|| panic!("{hint}"));
            let asked = hint.find("Otherwise ask the user").unwrap_or(usize::MAX);
            assert!(here < asked, "own means come first: {hint}");
            assert!(
                !hint.contains("--allow-write /etc") && !hint.contains("--allow-write /usr"),
                "{hint}"
            );
        }
        let told = run(server, "readonly_shell", "touch ./new");
        assert!(told.contains("use sandboxed_shell to write"), "{tier}: {told}");
        let told = run(
            server,
            "sandboxed_shell",
            "cat missing.txt; ls -d /usr/no-such-file",
        );
        assert!(!told.contains("hint: "), "{tier}: {told}");
    }
}

/// As a scanner whose data lies outside: installing it again would not help.
#[test]
fn a_program_that_cannot_reach_its_files_is_not_said_to_be_missing() {
    let workspace = Workspace::new();
    let data = workspace.home().join("scanner/data.txt");
    fs::create_dir_all(data.parent().unwrap()).unwrap();
    fs::write(&data, "rules").unwrap();
    let check = format!("cat {}", data.display());
    let file = json!({
        "name": "scanner", "description": "Scans.", "command": "echo",
        "availability_check": check, "install_instructions": "apt install scanner",
    });
    workspace.write_tool("scanner.json", &file);
    let server = &mut open(&workspace, "full");
    // A check that takes long does not hold up a call.
    let refused = wait_for("the check", || {
        let result = server.tool("scanner", json!({}));
        (result["isError"] == json!(true)).then_some(result)
    });
    let told = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        told.contains(&format!("{} may be in the host's /tmp", data.display()))
            && !told.contains("apt install"),
        "{told}"
    );
}
