//! The `ahma_http_bridge` command line.

use std::process::Command;

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
fn mistakes_are_told_with_what_to_do() {
    let table: [(&[&str], i32, &str); 5] = [
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
    ];
    for (flags, code, told) in table {
        let (found, stderr) = run(flags);
        assert_eq!(found, code, "{flags:?}: {stderr}");
        assert!(stderr.contains(told), "{flags:?}: {stderr}");
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
