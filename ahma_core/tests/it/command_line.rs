//! The program as a command: modes that print and end, exit codes, the log.

use std::process::Output;

use serde_json::{Value, json};
use test_support::{Era, Workspace, wait_for};

use crate::session::{echo, options};
use crate::terminal::{open_terminal, read_to_end};

pub(crate) fn run(workspace: &Workspace, arguments: &[&str]) -> Output {
    options(workspace)
        .args(arguments)
        .command()
        .output()
        .expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// That a command with these arguments ended with this code and said these words on stderr.
#[track_caller]
pub(crate) fn assert_ended(output: &Output, arguments: &[&str], code: i32, words: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(words), "{arguments:?}: {said}");
}

#[test]
fn list_tools_prints_what_clients_would_see_and_what_is_missing() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    let mut missing = echo("missing");
    missing["availability_check"] = json!({"command": "no-such-program-here"});
    missing["install_instructions"] = json!("apt install it");
    workspace.write_tool("missing.json", &missing);

    let output = run(&workspace, &["--mode", "list-tools"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let tool = |name: &str| {
        listed["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|tool| tool["name"] == name)
            .expect("listed")
            .clone()
    };
    assert_eq!(tool("say")["available"], true);
    assert_eq!(tool("say")["source"], json!(workspace.tools().join("say.json")));
    assert_eq!(tool("say")["parameters"]["required"], json!(["format"]));
    assert!(
        tool("say")["description"]
            .as_str()
            .expect("text")
            .contains("Prints")
    );
    for name in ["await", "cancel", "output", "sandboxed_shell", "status"] {
        assert_eq!(tool(name)["available"], true, "{name}");
    }
    assert_eq!(tool("await")["source"], Value::Null);
    assert_eq!(tool("missing")["available"], false);
    assert_eq!(tool("missing")["install_instructions"], "apt install it");

    let output = run(&workspace, &["--mode", "list-tools", "--format", "text"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("say (say.json)") && text.contains("- format (string, required)"),
        "{text}"
    );
    assert!(
        text.contains("not available: `no-such-program-here` was not found"),
        "{text}"
    );
}

#[test]
fn exit_codes_tell_whose_turn_it_is() {
    let workspace = Workspace::new();
    for (arguments, code, words) in [
        (&["--help"][..], 0, ""),
        (&["--version"], 0, ""),
        (&["--no-such-flag"], 2, "--no-such-flag"),
        (&["docter"], 2, "a similar subcommand exists: 'doctor'"),
        (&["--list-tools"], 2, "tip: write it as --mode list-tools"),
        (&["list-tools"], 2, "tip: write it as --mode list-tools"),
        (&["sandbox-report"], 2, "tip: write it as --sandbox-report"),
        (&["init", "vscode"], 2, "tip: write it as --client vscode"),
        (&["--doctor"], 2, "tip: commands have no dashes: ahma_mcp doctor"),
        (&["--network", "ports"], 2, "hint: add --allow-connect"),
        (
            &["--sandbox-scope", "missing"],
            1,
            "hint: give an existing directory",
        ),
        (&["--shell", "bash"], 1, "hint: write it as"),
        (
            &["--shell", "/bin/true"],
            3,
            "/bin/true does not run scripts inside the sandbox: it printed nothing",
        ),
        (&["--allow-read", "/no/such/path"], 1, "/no/such/path"),
        (
            &["--allow-write", "/no/such/path"],
            1,
            "hint: give a path that exists",
        ),
        (&["--timeout", "soon"], 2, "expected a duration"),
        (&["help"], 0, ""),
        (
            &["--sandbox-scope", "/"],
            1,
            "the sandbox scope / would leave nothing outside it",
        ),
        (
            &["--sandbox-scope", "/tmp", "--allow-write", "/var/tmp"],
            1,
            "the server's own files would be open to commands",
        ),
        (
            &["--network", "loopback", "--sandbox-tier", "core"],
            2,
            "hint: leave --sandbox-tier out",
        ),
        (&["--no-sandbox", "--deny-sensitive-reads"], 2, "contradicts"),
        (
            &["--tools-dir", "/no/such"],
            1,
            "--tools-dir /no/such cannot be used",
        ),
        (
            &["--tools-dir", "/no/such", "--mode", "list-tools"],
            1,
            "--tools-dir /no/such cannot be used",
        ),
        (
            &["--tools-dir", "/no/such", "run", "x"],
            1,
            "--tools-dir /no/such cannot be used",
        ),
    ] {
        let output = run(&workspace, arguments);
        assert_ended(&output, arguments, code, words);
        let said = stderr(&output);
        assert!(!said.contains("as a value, use"), "{arguments:?}: {said}");
    }
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let workspace = Workspace::new();
    for arguments in [
        &["man"][..],
        &["completions", "bash"],
        &["doctor", "--json"],
        &["--sandbox-report"],
        &["--mode", "list-tools"],
        &["token", "new", "--name", "lost"],
        &["run", "sandboxed_shell", "echo said"],
        &["run", "sandboxed_shell", "--help"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = options(&workspace)
            .args(arguments)
            .command()
            .stdout(full.expect("every Linux has it"))
            .output()
            .expect("it starts");
        assert_ended(&output, arguments, 1, "error: cannot write to stdout: ");
    }
}

#[test]
fn what_would_be_passed_over_is_told() {
    let workspace = Workspace::new();
    let list = &["--mode", "list-tools", "--http-port", "0", "--session-isolation"][..];
    for (variable, value, arguments, code, words) in [
        (
            "AHMA_NO_SANDBOX",
            "maybe",
            &[][..],
            2,
            "comes from the variable AHMA_NO_SANDBOX",
        ),
        (
            "AHMA_METRICS",
            "2",
            &[],
            2,
            "comes from the variable AHMA_METRICS",
        ),
        (
            "AHMA_METRICS",
            "1",
            list,
            0,
            "do nothing: --http-port, --session-isolation\n",
        ),
        ("AHMA_SYNCWAIT", "1", list, 0, "did you mean AHMA_SYNC_WAIT?"),
        ("AHMA_TOKENS_FILE", "/no/such", &["--mode", "http"], 1, "/no/such"),
        (
            "AHMA_TOKENSFILE",
            "x",
            &["--mode", "http"],
            2,
            "hint: did you mean AHMA_TOKENS_FILE?",
        ),
    ] {
        let output = options(&workspace)
            .env(variable, value)
            .args(arguments)
            .command()
            .output()
            .expect("it starts");
        assert_ended(&output, arguments, code, words);
    }
}

#[test]
fn keys_that_a_flag_opens_can_be_refused() {
    let workspace = Workspace::new();
    let home = workspace.home();
    for file in [".ssh/id_ed25519", ".cargo/credentials.toml"] {
        let file = home.join(file);
        std::fs::create_dir_all(file.parent().expect("it has one")).expect("writable");
        std::fs::write(file, "secret").expect("writable");
    }
    let home = home.to_str().expect("plain");
    let cargo = format!("{home}/.cargo");
    for (arguments, code, words) in [
        (&["--sandbox-report"][..], 0, ""),
        (&["--sandbox-scope", home], 1, "would be open to commands through"),
        (&["--allow-read", home], 1, "(--allow-read)"),
        (&["--allow-write", &cargo], 1, "credentials.toml would be open"),
    ] {
        let arguments = [&["--deny-sensitive-reads"], arguments].concat();
        assert_ended(&run(&workspace, &arguments), &arguments, code, words);
    }
}

#[test]
fn a_flag_wins_over_its_variable() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.scope().join("by_flag")).expect("writable");
    std::fs::create_dir(workspace.scope().join("by_variable")).expect("writable");
    let options = options(&workspace).env("AHMA_SANDBOX_SCOPE", "by_variable");
    for (options, expected) in [
        (options.clone(), "by_variable"),
        (options.args(["--sandbox-scope", "by_flag"]), "by_flag"),
    ] {
        let mut server = options.open(Era::Legacy);
        let result = server.tool(
            "sandboxed_shell",
            json!({"command": "pwd", "execution_mode": "synchronous"}),
        );
        let pwd = result["structuredContent"]["output"]
            .as_str()
            .expect("text")
            .trim_end()
            .to_owned();
        assert_eq!(pwd, workspace.scope().join(expected).to_str().expect("plain"));
    }
}

/// Each of these is as long as a variable may be on Linux, nearly.
#[test]
fn variables_that_are_passed_on_may_be_long() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..4).map(|number| format!("LONG_{number}")).collect();
    let mut options = options(&workspace).args(["--pass-env", &names.join(",")]);
    for name in &names {
        options = options.env(name, "\"".repeat(120_000));
    }
    let script = "echo ${#LONG_0} ${#LONG_1} ${#LONG_2} ${#LONG_3}";
    let output = options
        .args(["run", "sandboxed_shell", script])
        .command()
        .output()
        .expect("it starts");
    assert_ended(&output, &["run"], 0, "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "120000 120000 120000 120000\n");
}

#[test]
fn help_is_what_it_was() {
    let workspace = Workspace::new();
    let output = run(&workspace, &["--help"]);
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_log_goes_to_a_file_of_the_day_and_not_to_the_project() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    server.close_input();
    server.wait();
    assert_eq!(server.complaints(), "");
    let logs = workspace.home().join(".cache/ahma_mcp");
    let files: Vec<_> = std::fs::read_dir(&logs).expect("it was made").flatten().collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(files[0].path()).expect("readable");
    assert!(text.contains("started") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(std::fs::read_dir(workspace.scope()).expect("readable").count(), 0);
}

#[test]
fn the_log_on_stderr_has_colour_on_a_terminal_unless_it_is_declined() {
    let workspace = Workspace::new();
    for (no_color, coloured) in [("", true), ("1", false)] {
        let (mut screen, side) = open_terminal();
        let mut child = options(&workspace)
            .args(["--log-to-stderr"])
            .env("NO_COLOR", no_color)
            .command()
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(side)
            .spawn()
            .expect("it starts");
        let told = read_to_end(&mut screen);
        assert!(child.wait().expect("it ends").success(), "{told}");
        assert!(told.contains("started"), "{told}");
        assert_eq!(told.contains('\u{1b}'), coloured, "{told}");
    }
    let mut server = options(&workspace).args(["--log-to-stderr"]).open(Era::Legacy);
    server.close_input();
    server.wait();
    let told = wait_for("the log", || {
        Some(server.complaints()).filter(|told| told.contains("started"))
    });
    assert!(!told.contains('\u{1b}'), "{told}");
}

#[test]
fn the_log_names_the_tools_that_are_not_available() {
    let workspace = Workspace::new();
    let mut missing = echo("missing");
    missing["availability_check"] = json!("no-such-program-here");
    workspace.write_tool("missing.json", &missing);
    let output = run(&workspace, &["--log-to-stderr", "--mode", "list-tools"]);
    assert_ended(&output, &["--mode", "list-tools"], 0, "not available: missing: ");
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let workspace = Workspace::new();
    std::fs::write(workspace.home().join(".cache"), "in the way").expect("writable");
    let mut server = options(&workspace).open(Era::Legacy);
    assert!(!server.tool_names().is_empty());
    wait_for("the complaint", || {
        server
            .complaints()
            .contains("no log can be written")
            .then_some(())
    });
}

#[test]
fn a_misspelt_variable_is_told_of_whatever_is_done() {
    let workspace = Workspace::new();
    for arguments in [
        &["run", "sandboxed_shell", "true"][..],
        &["--mode", "list-tools"],
        &["completions", "bash"],
    ] {
        let output = options(&workspace)
            .args(arguments)
            .env("AHMA_NETWROK", "off")
            .command()
            .output()
            .expect("it starts");
        assert_ended(
            &output,
            arguments,
            0,
            "AHMA_NETWROK is not known; did you mean AHMA_NETWORK?",
        );
    }
}

#[test]
fn a_scope_that_no_client_could_name_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let workspace = Workspace::new();
    let scope = workspace.scope().join(std::ffi::OsStr::from_bytes(b"d\xff"));
    std::fs::create_dir(&scope).expect("writable");
    let output = options(&workspace)
        .args(["--sandbox-scope".as_ref(), scope.as_os_str()])
        .args(["run", "sandboxed_shell", "true"])
        .command()
        .output()
        .expect("it starts");
    assert_ended(&output, &["--sandbox-scope"], 1, "its path is not UTF-8");
}

/// `record` prints what the rules see when the tool runs.
#[test]
fn a_recording_keeps_both_streams_and_gives_its_findings_again() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &crate::live::scanner());
    let script = "printf '\\r10 percent' >&2; echo 'hole high CVE-1 at port/1: old; do update'; printf '\\r20 percent\\n' >&2; exit 3";
    std::fs::write(workspace.scope().join("scan.sh"), script).unwrap();
    let rules = {
        let block = serde_json::from_value(crate::live::scanner()["stream"].clone()).unwrap();
        std::sync::Arc::new(ahma_core::observe::compile(&block).unwrap())
    };
    for arguments in [
        &["record", "scan", "scan.sh"] as &[&str],
        &["record", "--", "sh", "scan.sh"],
    ] {
        let output = run(&workspace, arguments);
        let recording = String::from_utf8(output.stdout.clone()).unwrap();
        assert_ended(&output, arguments, 0, "");
        assert!(
            recording.starts_with("# cmd: sh scan.sh   [pipes]\n"),
            "{recording}"
        );
        assert!(
            recording.contains("out| hole high CVE-1 at port/1: old; do update\\n\n"),
            "{recording}"
        );
        assert!(recording.contains("err| \\r10 percent"), "{recording}");
        assert!(recording.contains("# exit 3 after "), "{recording}");
        let replayed = ahma_core::observe::replay(&rules, &recording);
        let events: Vec<Value> = (replayed.iter().flat_map(|line| &line.events))
            .map(|event| serde_json::to_value(event).unwrap())
            .collect();
        let findings: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "finding")
            .collect();
        assert_eq!(findings.len(), 1, "{recording}");
        assert_eq!(findings[0]["id"], "CVE-1");
        assert!(events.iter().any(|event| event["percent"] == 20.0), "{events:?}");
        assert_eq!(ahma_core::observe::unmatched(&rules, &recording), []);
    }
}
