//! Tokens and audit trails: made, used against a real bridge, verified.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use rustix::process::Signal;
use serde_json::json;
use test_support::{HttpServer, Roots, Workspace, wait_for};

use crate::command_line::{assert_ended, run};
use crate::session::options;

/// The status of one request.
fn status(address: &str, token: Option<&str>) -> u16 {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let credential = token
        .map(|token| format!("Authorization: Bearer {token}\r\n"))
        .unwrap_or_default();
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         {credential}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_token_opens_the_bridge_and_the_trail_shows_any_change() {
    let workspace = Workspace::new();
    let output = run(
        &workspace,
        &[
            "token",
            "new",
            "--name",
            "ci",
            "--expires",
            "30d",
            "--max-sessions",
            "2",
        ],
    );
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{complaints}");
    let token = String::from_utf8(output.stdout)
        .expect("text")
        .trim_end()
        .to_owned();
    assert!(
        token.starts_with("ahma_") && !token.contains('\n'),
        "only the token is data"
    );
    assert!(!complaints.contains(&token), "{complaints}");
    let tokens = workspace.home().join(".config/ahma_mcp/tokens.json");
    let file = fs::read_to_string(&tokens).expect("written");
    assert!(file.contains("\"ci\"") && !file.contains(&token), "{file}");
    let trail = workspace.home().join("audit.jsonl");
    let (tokens, audit_file) = (tokens.display().to_string(), trail.display().to_string());
    assert!(
        complaints.contains(&format!("--tokens-file {tokens}")),
        "{complaints}"
    );

    let mut server = options(&workspace)
        .args(["--mode", "http", "--http-port", "0", "--auth", "token"])
        .args(["--tokens-file", &tokens, "--audit-file", &audit_file])
        .start();
    let address = wait_for("the bridge to listen", || {
        let complaints = server.complaints();
        let (_, rest) = complaints.split_once("listening on http://")?;
        Some(rest.split_once("/mcp")?.0.to_owned())
    });
    assert_eq!(status(&address, None), 401);
    assert_eq!(status(&address, Some("ahma_wrong")), 401);
    assert_eq!(status(&address, Some(&token)), 200);
    server.signal(Signal::TERM);
    server.wait();

    let verify = || run(&workspace, &["audit", "verify", &audit_file]);
    let output = verify();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = fs::read_to_string(&trail).expect("written");
    assert!(!text.contains(&token), "{text}");
    let mut lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() >= 3, "{text}");
    lines.remove(1);
    fs::write(&trail, lines.join("\n")).expect("writable");
    let output = verify();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaints}");
    assert!(
        complaints.contains("audit.jsonl: line 2 does not follow"),
        "{complaints}"
    );
}

#[test]
fn without_an_audit_file_the_log_tells_of_sessions() {
    let workspace = Workspace::new();
    let mut server = HttpServer::start(&options(&workspace).args([
        "--mode",
        "http",
        "--http-port",
        "0",
        "--log-to-stderr",
    ]));
    drop(server.session(Roots::None));
    wait_for("the events of the session", || {
        let said = server.process().complaints();
        said.contains("session_opened").then_some(())
    });
}

/// A command that can write the tokens file can let itself in, and ask for a session elsewhere.
#[test]
fn commands_reach_no_file_of_the_bridge() {
    let workspace = Workspace::new();
    let open = workspace.home().join("open");
    fs::create_dir(&open).expect("writable");
    for flag in ["--tokens-file", "--audit-file"] {
        for (file, opened) in [("file.json", None), ("../home/open/file.json", Some(&open))] {
            let grant = opened.map(|open| ["--allow-read".into(), open.display().to_string()]);
            let output = options(&workspace)
                .args(["--mode", "http", "--http-port", "0", flag, file])
                .args(grant.into_iter().flatten())
                .command()
                .output()
                .expect("it starts");
            assert_ended(&output, &[flag, file], 1, "commands could reach");
        }
    }

    // What is open differs from session to session.
    let trail = open.join("audit.jsonl");
    let mut listening =
        options(&workspace).args(["--mode", "http", "--http-port", "0", "--session-isolation"]);
    listening = listening.args(["--audit-file", &trail.display().to_string()]);
    let listening = HttpServer::start(&listening);
    for (root, is_served) in [(workspace.scope(), true), (open, false)] {
        let mut client = listening.session(Roots::One(&root));
        let touch = json!({"name": "sandboxed_shell", "arguments": {"command": "touch here", "execution_mode": "synchronous"}});
        let answer = client.call("tools/call", touch);
        assert_eq!(answer.get("error").is_none(), is_served, "{answer}");
        assert_eq!(root.join("here").exists(), is_served, "{answer}");
    }
}

#[test]
fn mistakes_are_named() {
    let workspace = Workspace::new();
    for (name, text) in [("list.json", "[]"), ("empty", "")] {
        fs::write(workspace.scope().join(name), text).expect("writable");
    }
    let confined = [
        "token",
        "new",
        "--name",
        "x",
        "--scope",
        ".",
        "--file",
        "../home/confined.json",
    ];
    // What it says to serve with is what works.
    assert_ended(
        &run(&workspace, &confined),
        &confined,
        0,
        "--mode http --session-isolation",
    );
    assert_ended(&run(&workspace, &confined), &confined, 0, "is revoked");
    // The file has a confined token still.
    let free = ["token", "new", "--name", "y", "--file", "../home/confined.json"];
    assert_ended(
        &run(&workspace, &free),
        &free,
        0,
        "--mode http --session-isolation",
    );
    // The flag that serves with the file names it here, too.
    let other = [
        "token",
        "new",
        "--name",
        "z",
        "--tokens-file",
        "../home/other.json",
    ];
    let made = run(&workspace, &other);
    assert_ended(&made, &other, 0, "--tokens-file ../home/other.json");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(!said.contains("warning"), "{said}");
    assert!(workspace.home().join("other.json").exists());
    for (arguments, code, words) in [
        (&["token", "new"][..], 2, "--name"),
        (
            &["token", "new", "--name", "x", "--expires", "soon"],
            2,
            "expected a duration",
        ),
        (
            &["token", "new", "--name", "x", "--expires", "99999999d"],
            2,
            "--expires goes beyond the year 9999",
        ),
        (
            &["token", "new", "--name", "x", "--scope", "/no/such"],
            1,
            "--scope /no/such",
        ),
        (
            &["token", "new", "--name", "x", "--file", "/no/such/file"],
            1,
            "/no/such/file",
        ),
        (&["token", "new", "--name", ""], 1, "needs a name"),
        (
            &["token", "new", "--name", "x", "--max-sessions", "0"],
            1,
            "of no use",
        ),
        (
            &["token", "new", "--name", "x", "--file", "list.json"],
            1,
            "writes a well-formed one",
        ),
        (&["audit", "verify", "/no/such"], 1, "/no/such cannot be read"),
        (&["audit", "verify", "empty"], 1, "it is empty"),
        (
            &["--mode", "http", "--tokens-file", "../home/confined.json"],
            1,
            "--session-isolation",
        ),
        (
            &[
                "--mode",
                "http",
                "--http-port",
                "0",
                "--audit-file",
                "/no/such/file",
            ],
            1,
            "--audit-file /no/such/file: No such file or directory (os error 2)\nhint: give a file that you can write to",
        ),
        (
            &[
                "--mode",
                "http",
                "--http-port",
                "0",
                "--tls-cert",
                "/no/cert",
                "--tls-key",
                "/no/key",
            ],
            1,
            "--tls-cert /no/cert: No such file or directory (os error 2)\nhint: give a PEM file",
        ),
        (
            &["--mode", "http", "--sse-endpoint", "sse"],
            2,
            "must begin with `/`",
        ),
    ] {
        assert_ended(&run(&workspace, arguments), arguments, code, words);
    }
}
