//! The program, run as a user runs it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Output, Stdio},
};

use test_support::needs;

/// A server of the legacy era in a few lines of shell.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"greet","description":"Says hello.\\nTwice.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"Whom"},"loud":{"type":"boolean"}},"required":["name"]}}]}}\n' "$id";;
  esac
done
"#;

fn program(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ahma_list_tools"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AHMA_") {
            command.env_remove(name);
        }
    }
    command.args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn lists_the_tools_of_a_program() {
    let output = program(&["--", "sh", "-c", SERVER]);
    assert_eq!(stderr(&output), "");
    insta::assert_snapshot!(stdout(&output), @r"
    sh 1: 1 tool (stdio, protocol 2025-06-18)

    greet
      Says hello.
      Twice.
        loud (boolean)
        name (string, required) Whom
    ");
    assert!(output.status.success());
}

#[test]
fn json_has_name_description_and_parameters() {
    let output = program(&["--format", "json", "--", "sh", "-c", SERVER]);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let tool = &listed["tools"][0];
    assert_eq!(tool["name"], "greet");
    assert_eq!(tool["description"], "Says hello.\nTwice.");
    assert_eq!(tool["parameters"]["required"], serde_json::json!(["name"]));
    assert_eq!(listed["protocol"], "2025-06-18");
}

#[test]
fn servers_of_a_file_are_chosen_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.json");
    let config = serde_json::json!({"servers": {
        "good": {"command": "sh", "args": ["-c", SERVER]},
        "bad": {"url": "ftp://x.example"},
    }});
    std::fs::write(&file, config.to_string()).unwrap();
    let file = file.to_str().unwrap();
    assert!(program(&["--mcp-config", file]).status.success());
    assert!(
        program(&["--mcp-config", file, "--server", "good"])
            .status
            .success()
    );
    for (args, code, said) in [
        (
            vec!["--mcp-config", file, "--server", "bad"],
            1,
            "servers.bad.url: must be an http or https address",
        ),
        (
            vec!["--mcp-config", file, "--server", "gone"],
            1,
            "hint: its servers are: good",
        ),
        (
            vec!["--mcp-config", "/no/such/file"],
            1,
            "/no/such/file does not exist",
        ),
        (
            vec!["--mcp-config", "/no/such/file", "--server", "x"],
            1,
            "/no/such/file does not exist",
        ),
        (vec!["--mcp-config", "/"], 1, "cannot be read"),
    ] {
        let output = program(&args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_server_on_the_command_line_wins_over_a_variable() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ahma_list_tools"));
    command.env("AHMA_MCP_CONFIG", "/no/such/file");
    command.args(["--http", "ftp://x.example"]);
    let output = command.output().unwrap();
    assert!(
        stderr(&output).contains("is not an http or https address"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn failures_say_what_to_do_and_leave_stdout_empty() {
    let dead = format!("http://127.0.0.1:{}/mcp", test_support::quiet_port());
    for (args, code, said) in [
        (vec!["--http", dead.as_str()], 1, "Connection refused"),
        (
            vec!["--http", "ftp://x.example"],
            1,
            "is not an http or https address",
        ),
        (
            vec!["--http", dead.as_str(), "--token-env", "AHMA_NO_SUCH"],
            1,
            "`AHMA_NO_SUCH` is not set",
        ),
        (
            vec!["--", "/no/such/program"],
            1,
            "cannot start `/no/such/program`",
        ),
        (vec!["--http", "x.example"], 2, "write https://x.example"),
        (vec!["--server", "x", "--", "y"], 2, "needs --mcp-config"),
        (vec![], 2, "required arguments"),
        (vec!["--http", dead.as_str(), "--", "x"], 2, "cannot be used with"),
    ] {
        let output = program(&args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}");
        assert!(
            code == 2 || stderr(&output).contains("\nhint: "),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_key_in_the_address_is_not_repeated() {
    let dead = format!(
        "http://u:s3cret@127.0.0.1:{}/mcp?key=s3cret",
        test_support::quiet_port()
    );
    let said = stderr(&program(&["--http", &dead]));
    assert!(said.contains("/mcp?key=…`") && !said.contains("s3cret"), "{said}");
}

#[test]
fn a_server_that_wants_a_login_is_a_missing_prerequisite() {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let _ = stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    for (flags, command) in [
        (&[][..], format!("ahma_mcp login {url}")),
        (
            &["--token-file", "/no such/file"],
            format!("ahma_mcp login {url} --token-file '/no such/file'"),
        ),
    ] {
        let output = program(&[&["--http", &url], flags].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(&format!("hint: run `{command}`, or name a variable")),
            "{}",
            stderr(&output)
        );
    }
    for variable in ["AHMA_HTTP_CLIENT_TOKEN_PATH", "AHMA_TOKEN_FILE"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ahma_list_tools"));
        command.env(variable, "/a/file").args(["--http", &url]);
        let said = stderr(&command.output().unwrap());
        assert!(said.contains("--token-file /a/file"), "{variable}: {said}");
    }
    // Of a child, so that no other test sees it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_ahma_list_tools"));
    command.env("MY_TOKEN", "wrong");
    command.args(["--http", &url, "--token-env", "MY_TOKEN"]);
    let output = command.output().unwrap();
    assert!(
        stderr(&output).contains("`MY_TOKEN` right?"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_closed_stderr_changes_no_exit_code() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ahma_list_tools"));
    command.args(["--", "/no/such/program"]).stderr(writer);
    assert_eq!(command.status().unwrap().code(), Some(1));
}

#[test]
fn help_and_version() {
    let help = program(&["--help"]);
    assert!(help.status.success());
    for flag in [
        "--http",
        "--mcp-config",
        "--server",
        "--format",
        "--token-env",
        "AHMA_HTTP_CLIENT_TOKEN_PATH",
    ] {
        assert!(stdout(&help).contains(flag), "{flag}");
    }
    assert_eq!(
        stdout(&program(&["--version"])),
        concat!("ahma_list_tools ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn no_time_at_all_is_wrong_usage() {
    let output = program(&["--timeout", "0", "--", "sh", "-c", SERVER]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("'--timeout <SECONDS>'"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_from_a_server_that_is_away() {
    if !needs("openssl", &["version"], "apt install openssl") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (key, certificate) = (at("key.pem"), at("certificate.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-keyout", &key, "-out", &certificate, "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let mut server = Command::new("openssl")
        .args(["s_server", "-accept", "0", "-key", &key, "-cert", &certificate])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let accepts = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("ACCEPT"));
    let port = accepts.unwrap().rsplit(':').next().unwrap().to_owned();
    let refused = program(&["--http", &format!("https://localhost:{port}/mcp")]);
    server.kill().unwrap();
    server.wait().unwrap();
    let told = stderr(&refused);
    assert!(
        told.contains("certificate") && told.contains("SSL_CERT_FILE"),
        "{told}"
    );
    let away = program(&["--http", &format!("https://localhost:{port}/mcp")]);
    assert!(
        stderr(&away).contains("is the server running"),
        "{}",
        stderr(&away)
    );
}
