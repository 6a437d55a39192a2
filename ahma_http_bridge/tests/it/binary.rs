//! The `ahma_http_bridge` command line.

use std::process::Command;

use rustix::process::Signal;

use crate::harness::{BridgeProcess, is_alive};

/// Exit code and standard error of a run that ends by itself.
fn run(flags: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"))
        .args(flags)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_port_that_is_taken_is_told_with_the_flag_for_another() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, said) = run(&["--http-port", &port, "--", "cat"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("cannot listen on 127.0.0.1:"), "{said}");
    assert!(said.contains("hint: choose another address with"), "{said}");
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let table: [(&[&str], i32, &str); 10] = [
        (&[], 2, "COMMAND"),
        (&["--http-port", "x", "--", "cat"], 2, "--http-port"),
        (
            &["--http-host", "0.0.0.0", "--http-port", "0", "--", "cat"],
            1,
            "--auth is none",
        ),
        (
            &[
                "--http-host",
                "0.0.0.0",
                "--http-port",
                "0",
                "--http-token",
                "t",
                "--",
                "cat",
            ],
            1,
            "--tls-cert",
        ),
        (
            &["--tokens-file", "/no/such/file", "--http-port", "0", "--", "cat"],
            1,
            "/no/such/file",
        ),
        (&["--", "no-such-program"], 1, "`no-such-program` cannot be found"),
        (
            &["--sse-endpoint", "/mcp", "--", "cat"],
            2,
            "/mcp is served already",
        ),
        (&["--sse-endpoint", "/{x}", "--", "cat"], 2, "its parts must be"),
        (
            &["--request-timeout", "soon", "--", "cat"],
            2,
            "expected a duration",
        ),
        (
            &[
                "--tls-cert",
                "/no/cert",
                "--tls-key",
                "/no/key",
                "--http-port",
                "0",
                "--",
                "cat",
            ],
            1,
            "--tls-cert /no/cert: No such file",
        ),
    ];
    for (flags, code, told) in table {
        let (found, stderr) = run(flags);
        assert_eq!(found, code, "{flags:?}: {stderr}");
        assert!(stderr.contains(told), "{flags:?}: {stderr}");
    }
}

#[test]
fn values_of_no_use_are_refused_with_the_flag_and_its_form() {
    let too_many = usize::MAX.to_string();
    let table = [
        ("--max-sessions", "0", "a number from 1"),
        ("--max-connections", "0", "a number from 1"),
        ("--max-connections", &too_many, "a number from 1"),
        ("--max-calls", "0", "a number from 1"),
        ("--max-body", "0", "more than zero"),
        ("--max-memory", "0", "more than zero"),
        ("--max-load", "nan", "greater than 0"),
        ("--max-load", "-1", "greater than 0"),
        ("--max-sessions-per-principal", "0", "a number from 1"),
        ("--oauth-issuer", "auth.example.org", "such as https://"),
        ("--oauth-issuer", "http://auth.example.org", "such as https://"),
        ("--oauth-resource", "https://x/mcp#y", "such as https://"),
        ("--oauth-resource", "ftp://x/mcp", "such as https://"),
        ("--allow-host", "http://x/y", "such as mcp.example.org"),
        ("--allow-origin", "x", "such as https://app.example.org"),
    ];
    for (flag, value, form) in table {
        let given = format!("{flag}={value}");
        // If it were accepted, the program that is missing would be what stops it.
        let (code, stderr) = run(&[&given, "--", "no-such-program"]);
        assert_eq!(code, 2, "{given}: {stderr}");
        assert!(
            stderr.contains(&format!("for '{flag}")) && stderr.contains(form),
            "{given}: {stderr}"
        );
    }
}

#[test]
fn help_and_version_are_data() {
    for flag in ["--help", "--version"] {
        let output = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"))
            .arg(flag)
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .contains("ahma_http_bridge")
        );
    }
}

#[test]
fn variables_are_read_like_flags_and_named_when_they_are_wrong() {
    let table = [
        (
            "AHMA_METRICS",
            "maybe",
            2,
            "the value is that of the variable AHMA_METRICS",
        ),
        (
            "AHMA_REQUEST_TIMEOUT",
            "soon",
            2,
            "the variable AHMA_REQUEST_TIMEOUT",
        ),
        // The switches are understood, so the program that is missing is what stops it.
        ("AHMA_DEBUG", "1", 1, "cannot be found"),
        ("AHMA_SESSION_ISOLATION", "yes", 1, "cannot be found"),
        ("AHMA_INSECURE_HTTP", "0", 1, "cannot be found"),
    ];
    for (name, value, code, told) in table {
        let output = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"))
            .args(["--", "no-such-program"])
            .env(name, value)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}: {stderr}");
        assert!(stderr.contains(told), "{name}: {stderr}");
    }
    // The regular name of the variable counts as well: there is never an open server for want of a name.
    let output = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"))
        .args(["--http-port", "0", "--", "cat"])
        .env("AHMA_TOKENS_FILE", "/no/such/file")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("/no/such/file")
    );
}

#[tokio::test]
async fn every_signal_that_ends_it_ends_its_server_as_well() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let bridge = BridgeProcess::start_attached();
        let mut client = bridge.client();
        client.initialize(serde_json::json!({})).await;
        let server = client.who().await.pid;
        bridge.stop_by(signal);
        assert!(!is_alive(server), "{signal:?}");
    }
}

#[test]
fn a_hang_up_that_is_ignored_stays_so() {
    let bridge = BridgeProcess::start_detached();
    let status = bridge.status();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "{status}");
    bridge.stop();
}
