//! The program as people run it: on files, with its exit codes and both reports.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn run(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ahma_validate"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_mistake_of_every_broken_file_is_named() {
    let output = run(fixtures(), &["broken"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn every_broken_file_has_a_problem_and_good_ones_beside_them_have_none() {
    let output = run(fixtures(), &["broken", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = report["problems"].as_array().unwrap();
    for entry in fs::read_dir(fixtures().join("broken")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let has_problem = problems
            .iter()
            .any(|problem| problem["file"] == format!("broken/{name}"));
        // The tool of `good_echo.json` has its name taken by another file, which is a problem of both.
        let is_good = name.starts_with("good_") && name != "good_echo.json";
        assert_ne!(has_problem, is_good, "{name}");
    }
}

#[test]
fn good_files_pass_and_folders_and_hidden_files_are_ignored() {
    let output = run(fixtures(), &["good"]);
    assert_eq!(text(&output.stdout), "2 files checked, no problems\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_directory_without_tool_files_is_a_mistake_that_a_pipeline_notices() {
    let empty = tempfile::tempdir().expect("a directory");
    let output = run(empty.path(), &["."]);
    assert_eq!(
        text(&output.stdout),
        "no files checked: names of tool files end in .json\n"
    );
    assert!(
        text(&output.stderr).starts_with("error: no tool files in .\nhint: "),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1));
    // The others are checked all the same.
    let good = fixtures().join("good");
    let output = run(empty.path(), &[".", good.to_str().expect("plain")]);
    assert_eq!(text(&output.stdout), "2 files checked, no problems\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_the_server_cannot_read_is_an_error_and_never_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let good = r#"{ "description": "D.", "command": "true" }"#;
    fs::write(at("good.json"), good).unwrap();
    fs::write(at("large.json"), format!("{good}{}", " ".repeat(4 << 20))).unwrap();
    symlink("loop.json", at("loop.json")).unwrap();
    symlink("gone", at("nowhere.json")).unwrap();
    symlink("/dev/zero", at("endless.json")).unwrap();
    let pipe = Command::new("mkfifo").arg(at("pipe.json")).status().unwrap();
    assert!(pipe.success());
    fs::create_dir(at("folder.json")).unwrap();
    symlink("folder.json", at("other_folder.json")).unwrap();

    let expected = [
        (
            "endless.json",
            "the file cannot be read: it is not a regular file",
        ),
        (
            "large.json",
            "the file cannot be read: it is larger than 4194304 bytes",
        ),
        (
            "loop.json",
            "the file cannot be read: Too many levels of symbolic links (os error 40)",
        ),
        ("nowhere.json", "the file is a link that leads nowhere"),
        ("pipe.json", "the file cannot be read: it is not a regular file"),
    ];
    let names = expected.map(|(name, _)| name);
    for arguments in [&["."][..], &names] {
        let output = run(directory.path(), &[&["--format", "json"], arguments].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let problems = report["problems"].as_array().unwrap().iter();
        let found: Vec<(&str, &str)> = problems
            .map(|problem| {
                let file = problem["file"].as_str().unwrap();
                (
                    file.trim_start_matches("./"),
                    problem["message"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(found, expected);
        assert_eq!(output.status.code(), Some(1));
    }
    let output = run(directory.path(), &["good.json"]);
    assert_eq!(text(&output.stdout), "1 file checked, no problems\n");
}

#[test]
fn a_single_file_is_checked_with_its_neighbours_but_reported_alone() {
    let output = run(fixtures(), &["good/greet_twice.json"]);
    assert_eq!(text(&output.stdout), "1 file checked, no problems\n");
    let output = run(&fixtures().join("broken"), &["good_counter.json"]);
    assert_eq!(text(&output.stdout), "1 file checked, no problems\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn warnings_alone_are_no_failure() {
    let output = run(fixtures(), &["broken/34_only_warnings.json"]);
    assert!(text(&output.stdout).ends_with("1 file checked, 0 errors, 6 warnings\n"));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_report_for_programs_gives_every_place() {
    let output = run(
        fixtures(),
        &["--format", "json", "broken/11_underscore_in_subcommand.json"],
    );
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn the_shipped_tool_files_are_flawless() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = run(workspace, &[]);
    assert!(
        text(&output.stdout).ends_with("files checked, no problems\n"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_path_that_does_not_exist_is_a_usage_error() {
    let output = run(fixtures(), &["nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let message = text(&output.stderr);
    assert!(
        message.starts_with("error: cannot read nowhere: ") && message.contains("\nhint: "),
        "{message}"
    );
}

#[test]
fn an_unknown_flag_is_a_usage_error() {
    assert_eq!(run(fixtures(), &["--frobnicate"]).status.code(), Some(2));
}

#[test]
fn help_teaches() {
    insta::assert_snapshot!(text(&run(fixtures(), &["--help"]).stdout));
    let version = run(fixtures(), &["--version"]);
    assert_eq!(
        text(&version.stdout),
        concat!("ahma_validate ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

const WATCHED: &str = r#"{ "name": "watched", "description": "Count.", "command": "count", "subcommand": [
  { "name": "up", "description": "Up.", "stream": { "rules": [
      { "emit": "progress", "match": "^(?P<pct>\\d+)%", "percent": "{pct}", "phase": "counting" },
      { "emit": "progress", "match": "^of (?P<all>\\d+)$", "total": "{all}" },
      { "emit": "finding", "match": "^bad (?P<what>.+)$", "finding": { "severity": "high", "id": "bad", "title": "{what}" } } ] } },
  { "name": "down", "description": "Down.", "stream": { "rules": [{ "emit": "ignore", "match": "x" }] } },
  { "name": "out", "description": "Out." } ] }"#;

#[test]
fn a_sample_shows_what_the_rules_see() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("watched.json"), WATCHED).unwrap();
    fs::write(
        directory.path().join("run.txt"),
        "of 7\n10%\r20%\nbad \x1b[1mthing\n",
    )
    .unwrap();
    let arguments = ["--sample", "run.txt", "--tool", "watched_up", "watched.json"];
    let output = run(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));

    let output = run(
        directory.path(),
        &[&arguments[..], &["--format", "json"]].concat(),
    );
    let lines: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(lines[2]["events"][0]["title"], "thing");
    assert_eq!(lines[1]["events"][1]["percent"], 20.0);
}

#[test]
fn a_sample_can_come_through_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("watched.json"), WATCHED).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ahma_validate"))
        .args(["--sample", "-", "--tool", "watched_up", "watched.json"])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"bad thing\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("1 line, 0 progress events, 1 finding\n"));
}

#[test]
fn a_sample_needs_one_tool_with_rules() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("watched.json"), WATCHED).unwrap();
    fs::write(directory.path().join("run.txt"), "x\n").unwrap();
    for (arguments, expected) in [
        (
            &["watched.json"][..],
            "choose one with --tool: watched_up, watched_down",
        ),
        (
            &["--tool", "watched_out", "watched.json"],
            "no tool `watched_out` with a `stream` block",
        ),
    ] {
        let output = run(directory.path(), &[&["--sample", "run.txt"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(expected),
            "{}",
            text(&output.stderr)
        );
    }
    let output = run(
        directory.path(),
        &["--sample", "gone.txt", "--tool", "watched_up", "watched.json"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot read gone.txt"));
}

/// Places of the mistakes in `fifteen_mistakes.json`.
const MISTAKES: [&str; 17] = [
    "/name",
    "/command",
    "/timeout_seconds",
    "/synchronus",
    "/exit_codes/300",
    "/options/0/type",
    "/options/1/format",
    "/options/2/default",
    "/options/3/name",
    "/options/4/required",
    "/options/5/enum",
    "/exclusive/0/1",
    "/stream/framing",
    "/stream/rules/0/match",
    "/stream/rules/0/finding/severity",
    "/stream/rules/1/emit",
    "/stream/rules/2/percent",
];

#[test]
fn fifteen_typical_mistakes_are_named_at_once_each_at_its_place() {
    let output = run(fixtures(), &["fifteen_mistakes.json", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = report["problems"].as_array().unwrap();
    let places: Vec<&str> = (problems.iter())
        .map(|problem| problem["pointer"].as_str().unwrap())
        .collect();
    let mut missed: Vec<&str> = MISTAKES.to_vec();
    missed.retain(|place| !places.contains(place));
    assert!(missed.is_empty(), "not named: {missed:?}\n{report:#}");
    assert!(
        places.contains(&"/stream/rules/0/finding/id"),
        "an argument that does not exist is named behind a bad pattern, too: {report:#}"
    );
    assert_eq!(
        places.len(),
        MISTAKES.len() + 1,
        "nothing is said twice: {report:#}"
    );
    let hint = |place: &str| {
        let problem = problems.iter().find(|problem| problem["pointer"] == place);
        problem.unwrap()["hint"].as_str().unwrap_or_default().to_owned()
    };
    assert!(hint("/options/0/type").contains("\"format\": \"path\""));
    assert!(hint("/options/1/format").contains("`path`"));
}

#[test]
fn a_program_that_does_not_exist_is_named_with_the_one_that_is_meant() {
    let scratch = tempfile::tempdir().unwrap();
    let programs = scratch.path().join("bin");
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("scanner"), "").unwrap();
    let tool = r#"{ "name": "x", "description": "X.", "command": "scaner -v" }"#;
    fs::write(scratch.path().join("x.json"), tool).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_ahma_validate"))
        .arg("x.json")
        .current_dir(scratch.path())
        .env("PATH", &programs)
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("warning: there is no program `scaner` on the PATH"),
        "{said}"
    );
    assert!(said.contains("did you mean `scanner`?"), "{said}");
}

#[test]
fn a_sample_says_why_rules_matched_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let tool = r#"{ "name": "x", "description": "X.", "command": "x", "install_instructions": "X.", "stream": { "rules": [
        { "emit": "summary", "match": "^done in (\\d+) s$" },
        { "emit": "noise", "on": "stderr", "match": "^debug" } ] } }"#;
    fs::write(scratch.path().join("x.json"), tool).unwrap();
    fs::write(scratch.path().join("run.txt"), "debug: a\ndone in 4 ms\n").unwrap();
    let output = run(scratch.path(), &["--sample", "run.txt", "x.json"]);
    let said = text(&output.stdout);
    assert!(
        said.contains(
            "rule 0 matched nothing: nearest is line 2, which it matches as far as `done in 4 `, but not `ms`"
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "rule 1 matched nothing: line 1 matches, but it is on stdout and the rule looks at stderr only"
        ),
        "{said}"
    );
}
