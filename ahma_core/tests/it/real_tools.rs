//! Real tools with their shipped tool files, run by the server in its sandbox: what they find reaches the client live.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, needs, pack_file, test_programs};

use crate::{session::options, toolchains};

/// Directory of the Python tools of the tests.
fn python_tools() -> PathBuf {
    test_programs().join("tools")
}

/// A server with the shipped file of one tool, and what the tests' own environment says about toolchains.
fn serving(workspace: &Workspace, file: &str) -> Server {
    let tool = serde_json::from_str(&fs::read_to_string(pack_file(file)).unwrap()).unwrap();
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
    options.args(["--sync-wait", "600s"]).open(Era::Legacy)
}

fn ask(server: &mut Server, tool: &str, mut arguments: Value) -> i64 {
    arguments["execution_mode"] = "synchronous".into();
    server.request(
        "tools/call",
        json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}),
    )
}

fn report(server: &mut Server, id: i64) -> Value {
    let timeout = toolchains::TOOL_TIMEOUT;
    let answer = server.answer_within(id, timeout).expect("an answer in time");
    let report = answer["result"]["structuredContent"].clone();
    assert!(report.is_object(), "{answer}");
    report
}

fn run(server: &mut Server, tool: &str, arguments: Value) -> Value {
    let id = ask(server, tool, arguments);
    report(server, id)
}

/// The listener never says anything, so nmap asks for its version for a long time.
#[test]
fn nmap_that_is_cut_off_has_told_the_open_ports() {
    if !needs("nmap", &["--version"], "apt install nmap") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let workspace = Workspace::new();
    let mut server = serving(&workspace, "nmap.json");
    let report = run(
        &mut server,
        "nmap",
        json!({"no-ping": true, "ports": port.to_string(), "targets": ["127.0.0.1"], "service-version": true,
               "timeout_seconds": 20}),
    );
    assert_eq!(report["status"], "timed_out", "{report}");
    assert_eq!(report["findings"][0]["id"], format!("tcp/{port}"), "{report}");
    assert_eq!(report["findings"][0]["location"], format!("127.0.0.1:{port}"));
}

#[test]
fn cargo_reports_a_mistake_before_it_has_ended() {
    if !needs("cargo", &["--version"], "install Rust with rustup") {
        return;
    }
    let workspace = Workspace::new();
    let scope = workspace.scope();
    let package = |directory: &Path, name: &str, rest: &str| {
        fs::create_dir_all(directory.join("src")).unwrap();
        let manifest =
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}");
        fs::write(directory.join("Cargo.toml"), manifest).unwrap();
    };
    package(
        &scope,
        "wrong",
        "[dependencies]\nfirst = { path = \"first\" }\n[workspace]\n",
    );
    package(&scope.join("first"), "first", "");
    fs::write(scope.join("first/src/lib.rs"), "pub fn f() { let unused = 1; }\n").unwrap();
    // The program is compiled when the library's warning has been seen.
    let build =
        "fn main() { while !std::path::Path::new(\"seen\").exists() { std::thread::sleep_ms(50) } }\n";
    fs::write(scope.join("build.rs"), build).unwrap();
    fs::write(scope.join("src/main.rs"), "fn main() { let x: u8 = \"text\"; }\n").unwrap();
    let mut server = serving(&workspace, "cargo.json");
    let id = ask(&mut server, "cargo_build", json!({"offline": true}));
    let is_warning = |finding: &Value| finding["title"].as_str().unwrap().contains("unused variable");
    server.expect("the warning while cargo runs", |message| {
        let findings = message["params"]["_meta"]["ahma/findings"].as_array();
        findings.is_some_and(|findings| findings.iter().any(is_warning))
    });
    fs::write(scope.join("seen"), "").unwrap();
    let report = report(&mut server, id);
    assert_eq!(report["status"], "failed", "{report}");
    let findings = report["findings"].as_array().unwrap();
    let mistake = findings.iter().find(|finding| finding["id"] == "E0308");
    assert_eq!(mistake.unwrap()["location"], "src/main.rs:1:25", "{findings:?}");
    assert!(findings.iter().any(is_warning), "{findings:?}");
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
    let tests = "import os, time\ndef test_good():\n    pass\n\ndef test_bad():\n    assert 1 == 2\n\n\
        def test_last():\n    while not os.path.exists('seen'):\n        time.sleep(0.05)\n";
    fs::write(workspace.scope().join("test_a.py"), tests).unwrap();
    let mut server = serving(&workspace, "pytest.json");
    let id = ask(&mut server, "pytest", json!({"verbose": true}));
    server.expect("how far it is", |message| message["params"]["total"] == 100.0);
    fs::write(workspace.scope().join("seen"), "").unwrap();
    let report = report(&mut server, id);
    assert_eq!(report["exit_code"], 1, "{report}");
    assert_eq!(report["findings"][0]["id"], "test_bad");
    assert_eq!(report["findings"][0]["title"], "assert 1 == 2");
    assert_eq!(report["findings"][0]["location"], "test_a.py:6");
    assert_eq!(report["finding_counts"]["high"], 1);
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
    let report = run(
        &mut server,
        "semgrep",
        json!({"config": ["rules.yml"], "paths": ["bad.py"]}),
    );
    assert_eq!(report["finding_counts"]["high"], 1, "{report}");
    let finding = &report["findings"][0];
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
    let report = run(
        &mut server,
        "git_clone",
        json!({"repository": address, "directory": "copy"}),
    );
    assert_eq!(report["status"], "completed", "{report}");
    assert!(workspace.scope().join("copy/300").exists());
    // Of everything that git drew, the last state of each line is left.
    let output = report["output"].as_str().unwrap();
    assert!(
        output.contains("Receiving objects: 100%") && !output.contains('\r'),
        "{output}"
    );
}
