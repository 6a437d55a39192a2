//! Real tools with their shipped tool files, run by the server behind its wall: what they find reaches the client live.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, needs, test_programs};

use crate::{session::options, toolchains};

/// Where the Python tools of the tests are.
fn python_tools() -> PathBuf {
    test_programs().join("tools")
}

/// A server with the shipped file of one tool, and what the tests' own environment says about toolchains.
fn serving(workspace: &Workspace, file: &str) -> Server {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../.ahma/tools")
        .join(file);
    let tool = serde_json::from_str(&fs::read_to_string(shipped).unwrap()).unwrap();
    workspace.write_tool(file, &tool);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut options = options(workspace)
        .env("PATH", format!("{}:{path}", python_tools().join("bin").display()))
        .env("VIRTUAL_ENV", python_tools());
    for (variable, default) in [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")] {
        if let Some(directory) = toolchains::real(variable, default) {
            options = options.env(variable, directory);
        }
    }
    options.open(Era::Legacy)
}

/// What one call gave: the result, and the findings that came before it.
struct Ran {
    report: Value,
    live: Vec<Value>,
    progress: Vec<Value>,
}

fn run(server: &mut Server, tool: &str, mut arguments: Value) -> Ran {
    arguments["execution_mode"] = "synchronous".into();
    let id = server.request(
        "tools/call",
        json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}),
    );
    let answer = server.answer(id);
    let report = answer["result"]["structuredContent"].clone();
    assert!(report.is_object(), "{answer}");
    let progress: Vec<Value> = server
        .others(std::time::Duration::ZERO)
        .into_iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| message["params"].clone())
        .collect();
    let live = progress
        .iter()
        .flat_map(|params| {
            params["_meta"]["ahma/findings"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    Ran {
        report,
        live,
        progress,
    }
}

#[test]
fn nmap_reports_an_open_port() {
    if !needs("nmap", &["--version"], "apt install nmap") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let workspace = Workspace::new();
    let mut server = serving(&workspace, "nmap.json");
    let closed = port ^ 1;
    let ran = run(
        &mut server,
        "nmap",
        json!({"connect": true, "no-ping": true, "ports": format!("{port},{closed}"), "targets": ["127.0.0.1"]}),
    );
    assert_eq!(ran.report["status"], "completed", "{}", ran.report);
    assert_eq!(ran.report["findings"][0]["id"], format!("tcp/{port}"));
    assert_eq!(ran.report["finding_counts"]["info"], 1, "{}", ran.report);
}

#[test]
fn cargo_reports_a_mistake_before_it_has_ended() {
    if !needs("cargo", &["--version"], "install Rust with rustup") {
        return;
    }
    let workspace = Workspace::new();
    let scope = workspace.scope();
    fs::create_dir(scope.join("src")).unwrap();
    let manifest = "[package]\nname = \"wrong\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(scope.join("Cargo.toml"), manifest).unwrap();
    // The program is checked after the library, so the library's warning comes while cargo still runs.
    fs::write(scope.join("src/lib.rs"), "pub fn f() { let unused = 1; }\n").unwrap();
    fs::write(scope.join("src/main.rs"), "fn main() { let x: u8 = \"text\"; }\n").unwrap();
    let mut server = serving(&workspace, "cargo.json");
    let ran = run(&mut server, "cargo_build", json!({"offline": true}));
    assert_eq!(ran.report["status"], "failed", "{}", ran.report);
    let findings = ran.report["findings"].as_array().unwrap();
    let mistake = findings.iter().find(|finding| finding["id"] == "E0308");
    assert_eq!(mistake.unwrap()["location"], "src/main.rs:1:25", "{findings:?}");
    let warned = |finding: &&Value| finding["title"].as_str().unwrap().contains("unused variable");
    assert!(findings.iter().any(|finding| warned(&finding)), "{findings:?}");
    assert!(
        ran.live.iter().any(|finding| warned(&finding)),
        "{:?}",
        ran.progress
    );
}

#[test]
fn pytest_reports_the_test_that_fails() {
    if !needs(
        python_tools().join("bin/pytest"),
        &["--version"],
        "scripts/test-programs",
    ) {
        return;
    }
    let workspace = Workspace::new();
    let tests = "import time\ndef test_good():\n    time.sleep(0.5)\n\ndef test_bad():\n    assert 1 == 2\n\ndef test_last():\n    time.sleep(0.5)\n";
    fs::write(workspace.scope().join("test_a.py"), tests).unwrap();
    let mut server = serving(&workspace, "pytest.json");
    let ran = run(&mut server, "pytest", json!({"verbose": true}));
    assert_eq!(ran.report["exit_code"], 1, "{}", ran.report);
    assert_eq!(ran.report["findings"][0]["id"], "test_a.py::test_bad");
    assert_eq!(ran.report["finding_counts"]["high"], 1);
    let percents = ran
        .progress
        .iter()
        .filter(|params| params["total"] == 100.0)
        .count();
    assert!(percents > 0, "{:?}", ran.progress);
}

#[test]
fn semgrep_reports_what_local_rules_find() {
    let check = ["--version", "--disable-version-check"];
    if !needs(
        python_tools().join("bin/semgrep"),
        &check,
        "scripts/test-programs",
    ) {
        return;
    }
    let workspace = Workspace::new();
    let rules = "rules:\n- id: no-eval\n  languages: [python]\n  severity: ERROR\n  message: never eval\n  pattern: eval(...)\n";
    fs::write(workspace.scope().join("rules.yml"), rules).unwrap();
    fs::write(workspace.scope().join("bad.py"), "x = 1\neval(input())\n").unwrap();
    let mut server = serving(&workspace, "semgrep.json");
    let ran = run(
        &mut server,
        "semgrep",
        json!({"config": ["rules.yml"], "paths": ["bad.py"]}),
    );
    assert_eq!(ran.report["finding_counts"]["high"], 1, "{}", ran.report);
    let finding = &ran.report["findings"][0];
    assert_eq!(finding["id"], "no-eval");
    assert_eq!(finding["location"], "bad.py:2:1");
    assert_eq!(finding["description"], "never eval");
}

#[test]
fn git_clone_shows_its_phases() {
    if !needs("git", &["--version"], "apt install git") {
        return;
    }
    let workspace = Workspace::new();
    let made = Command::new("bash")
        .args(["-ec", "git init -q origin && cd origin && for i in $(seq 300); do echo $i > $i; done && git add . && git -c user.name=a -c user.email=a@b commit -qm all"])
        .current_dir(workspace.scope())
        .status()
        .unwrap();
    assert!(made.success());
    let mut server = serving(&workspace, "git.json");
    let address = format!("file://{}", workspace.scope().join("origin").display());
    let ran = run(
        &mut server,
        "git_clone",
        json!({"repository": address, "directory": "copy"}),
    );
    assert_eq!(ran.report["status"], "completed", "{}", ran.report);
    assert!(workspace.scope().join("copy/300").exists());
    // Of everything that git drew, the last state of each line is left.
    let output = ran.report["output"].as_str().unwrap();
    assert!(
        output.contains("Receiving objects: 100%") && !output.contains('\r'),
        "{output}"
    );
}
