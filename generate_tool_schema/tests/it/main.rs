//! The schema program: what it writes, prints and checks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn run(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_generate_tool_schema"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

#[test]
fn the_committed_schema_is_fresh() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = run(workspace, &["--check"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn it_writes_what_it_prints_and_notices_a_change() {
    let directory = tempfile::tempdir().unwrap();
    assert!(run(directory.path(), &[]).status.success());
    let file = directory.path().join("schemas/mtdf.schema.json");
    let written = fs::read(&file).unwrap();
    assert_eq!(run(directory.path(), &["--print"]).stdout, written);
    assert!(run(directory.path(), &["--check"]).status.success());

    fs::write(&file, "{}").unwrap();
    let output = run(directory.path(), &["--check"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("schemas/mtdf.schema.json is out of date\nhint: "),
        "{message}"
    );
}

#[test]
fn the_program_describes_itself() {
    let directory = tempfile::tempdir().unwrap();
    let said = |argument| {
        let output = run(directory.path(), &[argument]);
        assert_eq!(output.status.code(), Some(0), "{argument}");
        String::from_utf8(output.stdout).unwrap()
    };
    let help = said("--help");
    assert!(
        help.contains("Usage: generate_tool_schema") && help.contains("--check"),
        "{help}"
    );
    assert_eq!(
        said("--version"),
        concat!("generate_tool_schema ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(run(directory.path(), &["--frobnicate"]).status.code(), Some(2));
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        0,
        "nothing was written"
    );
}
