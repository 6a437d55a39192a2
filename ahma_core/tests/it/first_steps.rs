//! First steps of a new user: set a project up, look whether it works, keep it that way.

use std::{fs, path::Path, process::Output};

use serde_json::Value;
use test_support::{ServerOptions, Workspace};

use crate::session::options;

fn run(workspace: &Workspace, arguments: &[&str]) -> Output {
    run_with(&options(workspace), arguments)
}

fn run_with(options: &ServerOptions, arguments: &[&str]) -> Output {
    options
        .clone()
        .args(arguments)
        .command()
        .output()
        .expect("it starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .expect("it was made")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn init_sets_a_project_up_for_each_client_and_a_second_run_finds_nothing_to_do() {
    for (client, file, words) in [
        ("vscode", "project/.vscode/mcp.json", "\"servers\""),
        ("cursor", "project/.cursor/mcp.json", "${workspaceFolder}"),
        ("claude", "project/.mcp.json", "\"mcpServers\""),
        ("codex", "project/.codex/config.toml", "[mcp_servers.Ahama]"),
        ("windsurf", "home/.codeium/windsurf/mcp_config.json", "/project\""),
    ] {
        let workspace = Workspace::new();
        fs::write(workspace.scope().join("Cargo.toml"), "").expect("writable");
        let arguments = ["init", "--client", client];
        let output = run(&workspace, &arguments);
        assert_eq!(output.status.code(), Some(0), "{client}: {}", stderr(&output));
        assert_eq!(
            names(&workspace.tools()),
            ["cargo.json", "rg.json", "rg_files.json", "rust_quality.json"]
        );
        let file = workspace.scope().parent().expect("it has one").join(file);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(text.contains("Ahama") && text.contains(words), "{client}: {text}");

        let output = run(&workspace, &arguments);
        assert!(
            stdout(&output).ends_with("nothing to do\n"),
            "{client}: {}",
            stdout(&output)
        );
        assert_eq!(fs::read_to_string(&file).expect("still there"), text);
    }
}

#[test]
fn a_scope_that_is_named_is_what_every_task_is_about() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &crate::session::echo("say"));
    let other = workspace.scope().join("other");
    fs::create_dir(&other).expect("writable");
    let scope = ["--sandbox-scope", "other"];
    let run = |arguments: &[&str]| run(&workspace, &[&scope[..], arguments].concat());

    let doctor = stdout(&run(&["doctor"]));
    let tools = other.join(".ahma/tools").display().to_string();
    assert!(doctor.contains(&format!("no tool files in {tools}")), "{doctor}");
    let init = run(&["init", "--client", "claude"]);
    assert_eq!(init.status.code(), Some(0), "{}", stderr(&init));
    assert_eq!(names(&workspace.tools()), ["say.json"]);
    assert_eq!(names(&other.join(".ahma/tools")), ["rg.json", "rg_files.json"]);
    assert!(other.join(".mcp.json").exists());
    let listed = stdout(&run(&["--mode", "list-tools"]));
    assert!(listed.contains(&tools), "{listed}");
}

#[test]
fn flags_before_init_are_those_that_the_client_starts_the_server_with() {
    for (client, file, tools) in [
        ("vscode", "project/.vscode/mcp.json", "./my-tools"),
        (
            "cursor",
            "project/.cursor/mcp.json",
            "${workspaceFolder}/my-tools",
        ),
        ("claude", "project/.mcp.json", "./my-tools"),
        ("codex", "project/.codex/config.toml", "./my-tools"),
        (
            "windsurf",
            "home/.codeium/windsurf/mcp_config.json",
            "/project/my-tools",
        ),
        ("copilot", "home/.copilot/mcp-config.json", "/project/my-tools"),
    ] {
        let workspace = Workspace::new();
        let flags = [
            "--network",
            "off",
            "--tools-dir",
            "my-tools",
            "--allow-read",
            "/usr",
        ];
        let arguments = [&flags[..], &["--sync", "init", "--client", client]].concat();
        let output = run(&workspace, &arguments);
        assert_eq!(output.status.code(), Some(0), "{client}: {}", stderr(&output));
        let file = workspace.scope().parent().expect("it has one").join(file);
        let text = fs::read_to_string(&file).expect("it was written");
        let text: String = text.split_whitespace().collect();
        let words = format!("{tools}\",\"--allow-read\",\"/usr\",\"--network\",\"off\",\"--sync\"");
        assert!(
            text.contains("\"--tools-dir\",") && text.contains(&words),
            "{client}: {text}"
        );
        assert_eq!(names(&workspace.scope().join("my-tools")).len(), 2);
        let again = run(&workspace, &arguments);
        assert!(stdout(&again).ends_with("nothing to do\n"), "{}", stdout(&again));
    }
}

#[test]
fn in_a_part_of_a_project_every_task_names_the_whole() {
    let workspace = Workspace::new();
    let part = workspace.scope().join("src");
    fs::create_dir_all(workspace.scope().join(".git")).expect("writable");
    fs::create_dir_all(&part).expect("writable");
    let run_in_part = |arguments: &[&str]| {
        let mut command = options(&workspace).args(arguments).command();
        command.current_dir(&part).output().expect("it starts")
    };
    let start = format!("run this in {}", workspace.scope().display());
    let refused = || {
        let output = run_in_part(&["init", "--client", "claude", "--yes"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&start), "{}", stderr(&output));
        assert_eq!(names(&part), Vec::<String>::new());
    };
    refused();
    assert_eq!(run(&workspace, &["init"]).status.code(), Some(0));
    refused();
    let doctor = stdout(&run_in_part(&["doctor"]));
    assert_eq!(doctor.matches(&start).count(), 2, "{doctor}");
    let unknown = stderr(&run_in_part(&["run", "git_status"]));
    assert!(unknown.contains(&start), "{unknown}");

    let by_itself = run_in_part(&["init", "--sandbox-scope", "."]);
    assert_eq!(by_itself.status.code(), Some(0), "{}", stderr(&by_itself));
    assert_eq!(names(&part), [".ahma"]);
}

#[test]
fn init_shows_the_difference_and_waits_for_a_yes() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.scope().join(".vscode")).expect("writable");
    let file = workspace.scope().join(".vscode/mcp.json");
    let mine = "{\n  // mine\n  \"servers\": { \"other\": { \"command\": \"x\" } }\n}\n";
    fs::write(&file, mine).expect("writable");

    let dry = run(&workspace, &["init", "--client", "vscode", "--dry-run"]);
    assert_eq!(dry.status.code(), Some(0));
    assert!(stdout(&dry).contains("+    \"Ahama\": {"), "{}", stdout(&dry));
    assert!(!workspace.tools().exists(), "a dry run wrote something");

    let refused = run(&workspace, &["init", "--client", "vscode"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(!stdout(&refused).contains("next:"), "{}", stdout(&refused));
    assert!(stderr(&refused).contains("hint: --yes"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&file).expect("readable"), mine);

    let agreed = run(&workspace, &["init", "--client", "vscode", "--yes"]);
    assert_eq!(agreed.status.code(), Some(0), "{}", stderr(&agreed));
    let text = fs::read_to_string(&file).expect("readable");
    assert!(
        text.contains("// mine") && text.contains("\"other\"") && text.contains("\"Ahama\""),
        "{text}"
    );
}

#[test]
fn a_later_init_leaves_tool_files_as_they_are_unless_told_to_update_them() {
    let workspace = Workspace::new();
    run(&workspace, &["init"]);
    let file = workspace.tools().join("rg.json");
    let shipped = fs::read_to_string(&file).expect("it was written");
    let mine = shipped.replacen("\"description\": \"", "\"description\": \"Mine. ", 1);
    assert_ne!(mine, shipped);
    fs::write(&file, &mine).expect("writable");

    let output = run(&workspace, &["init", "--client", "claude", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(
        said.contains("differ from this version: rg.json; --update-tools"),
        "{said}"
    );
    assert!(!said.contains("Mine."), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("readable"), mine);

    let refused = run(&workspace, &["init", "--update-tools"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stdout(&refused).contains("Mine."), "{}", stdout(&refused));
    let updated = run(&workspace, &["init", "--update-tools", "--yes"]);
    assert_eq!(updated.status.code(), Some(0), "{}", stderr(&updated));
    assert_eq!(fs::read_to_string(&file).expect("readable"), shipped);
}

#[test]
fn init_says_what_it_knows_where_it_knows_nothing() {
    let workspace = Workspace::new();
    fs::write(workspace.scope().join("main.zig"), "").expect("writable");
    let said = stdout(&run(&workspace, &["init", "--dry-run"]));
    assert!(
        said.contains("tool files exist for Rust (Cargo.toml), Python"),
        "{said}"
    );
    fs::write(workspace.scope().join("Makefile"), "").expect("writable");
    let said = stdout(&run(&workspace, &["init", "--dry-run"]));
    assert!(!said.contains("tool files exist for"), "{said}");
}

#[test]
fn packs_are_listed_and_written_by_name() {
    let workspace = Workspace::new();
    let listed = stdout(&run(&workspace, &["packs"]));
    assert!(listed.contains("\nsecurity "), "{listed}");
    let as_data: Value =
        serde_json::from_str(&stdout(&run(&workspace, &["packs", "--format", "json"]))).expect("JSON");
    let web = as_data
        .as_array()
        .expect("a list")
        .iter()
        .find(|pack| pack["name"] == "web")
        .expect("a pack");
    let files: Vec<&str> = (web["files"].as_array().expect("a list").iter())
        .filter_map(Value::as_str)
        .collect();
    let output = run(&workspace, &["init", "--pack", "web", "--pack", "search"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut expected = [&files[..], &["rg.json", "rg_files.json"]].concat();
    expected.sort_unstable();
    assert_eq!(names(&workspace.tools()), expected);
    let unknown = run(&workspace, &["init", "--pack", "secrity"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("'security'"), "{}", stderr(&unknown));
}

#[test]
fn the_page_of_the_packs_is_fresh() {
    let workspace = Workspace::new();
    let page = stdout(&run(&workspace, &["packs", "--format", "markdown"]));
    let committed = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/packs.md"));
    assert!(
        committed.is_ok_and(|committed| committed == page),
        "docs/packs.md is out of date; hint: ahma_mcp packs --format markdown > docs/packs.md"
    );
}

#[test]
fn init_adds_no_second_description_of_a_tool() {
    let workspace = Workspace::new();
    fs::write(workspace.scope().join("Makefile"), "").expect("writable");
    workspace.write_tool(
        "my_make.json",
        &serde_json::json!({"name": "make", "command": "make -s", "description": "Mine."}),
    );
    let output = run(&workspace, &["init"]);
    assert!(
        stdout(&output).contains("skipped make.json: my_make.json already has its tools"),
        "{}",
        stdout(&output)
    );
    let files = names(&workspace.tools());
    assert!(
        files.contains(&"shellcheck.json".to_owned()) && !files.contains(&"make.json".to_owned()),
        "{files:?}"
    );
}

#[test]
fn doctor_finds_what_is_wrong_and_what_to_do() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &crate::session::echo("say"));
    run(&workspace, &["init", "--client", "claude"]);
    let examine = || {
        let output = run(&workspace, &["doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", stdout(&output)));
        (output.status.code(), report)
    };
    let (code, report) = examine();
    assert_eq!(code, Some(0), "{report:#}");
    let status_of = |report: &Value, area: &str| {
        let checks = report["checks"].as_array().expect("a list").clone();
        checks
            .iter()
            .find(|check| check["area"] == area)
            .map(|check| check["status"].clone())
    };
    for area in ["kernel", "sandbox", "tools", "clients"] {
        assert_eq!(status_of(&report, area), Some("ok".into()), "{area}: {report:#}");
    }

    fs::write(
        workspace.tools().join("broken.json"),
        r#"{"command": "x", "descriptoin": "Oh."}"#,
    )
    .expect("writable");
    let mut missing = crate::session::echo("missing");
    missing["availability_check"] = "no-such-program-here".into();
    missing["install_instructions"] = "take it from the shelf".into();
    workspace.write_tool("missing.json", &missing);
    let mut unready = crate::session::echo("unready");
    unready["availability_check"] =
        serde_json::json!({"command": "sh", "args": ["-c", "echo; echo no default >&2; exit 1"]});
    workspace.write_tool("unready.json", &unready);
    let (code, report) = examine();
    assert_eq!(
        (code, &report["status"]),
        (Some(1), &"problem".into()),
        "{report:#}"
    );
    let text = stdout(&run(&workspace, &["doctor"]));
    for words in [
        "PROBLEM",
        "broken.json",
        "description",
        "do: take it from the shelf",
        "ended with exit code 1: no default",
    ] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
}

#[test]
fn doctor_is_not_content_when_no_tool_is_available() {
    let workspace = Workspace::new();
    let mut missing = crate::session::echo("missing");
    missing["availability_check"] = "no-such-program-here".into();
    workspace.write_tool("missing.json", &missing);
    let said = stdout(&run(&workspace, &["doctor"]));
    assert!(
        said.contains("warning  tools      none of the 1 tools in"),
        "{said}"
    );
    assert!(!said.contains("it works"), "{said}");
}

#[test]
fn doctor_tells_entries_that_lack_something_from_those_for_other_projects() {
    let workspace = Workspace::new();
    run(&workspace, &["init", "--client", "claude"]);
    let write = |file: std::path::PathBuf, text: &str| {
        fs::create_dir_all(file.parent().expect("it has one")).expect("writable");
        fs::write(file, text).expect("writable");
    };
    write(
        workspace.home().join(".codeium/windsurf/mcp_config.json"),
        r#"{"mcpServers": {"Ahama": {"command": "ahma_mcp", "args": ["--sandbox-scope", "/srv/other"]}}}"#,
    );
    let said = stdout(&run(&workspace, &["doctor"]));
    assert!(said.contains("note     clients    Windsurf"), "{said}");
    write(
        workspace.scope().join(".cursor/mcp.json"),
        r#"{"mcpServers": {"Ahama": {"command": "ahma_mcp"}}}"#,
    );
    let said = stdout(&run(&workspace, &["doctor"]));
    assert!(
        said.contains("warning  clients    Cursor") && said.contains("--sandbox-scope ${workspaceFolder}"),
        "{said}"
    );
}

#[test]
fn doctor_tells_a_missing_sandbox_from_a_mistake() {
    let workspace = Workspace::new();
    // Inside the sandbox there can be no other one with namespaces of its own: a real lack, not a pretended one.
    let program = env!("CARGO_BIN_EXE_ahma_mcp");
    let directory = Path::new(program)
        .parent()
        .expect("it has one")
        .display()
        .to_string();
    let script = format!("{program} --sandbox-tier full doctor; echo code $?");
    let output = run(
        &workspace,
        &["--allow-read", &directory, "run", "sandboxed_shell", &script],
    );
    let text = stdout(&output);
    assert!(
        text.contains("MISSING  sandbox    the full tier") && text.contains("leave out --sandbox-tier"),
        "{text}{}",
        stderr(&output)
    );
    assert!(text.contains("code 3"), "{text}");
    assert!(
        text.contains("kernel") && text.contains("clients"),
        "one failure hides the rest:\n{text}"
    );
}

#[test]
fn the_program_describes_itself() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        (&["completions", "bash"][..], "complete -F"),
        (&["completions", "zsh"], "#compdef ahma_mcp"),
        (&["completions", "fish"], "complete -c ahma_mcp"),
        (&["man"], ".TH ahma_mcp 1"),
        (&["man"], ".SH \"AHMA_MCP INIT\""),
        // Examples keep their lines.
        (&["man"], "Start here:\n.nf\n  ahma_mcp init  "),
        (&["help"], "ahma_mcp doctor"),
        (&["init", "--help"], "ahma_mcp init --client vscode"),
        (&["run", "--help"], "124 after a timeout"),
        (&["run", "--help"], "no stdin: pass a file"),
        (&["--help"], "ahma_mcp doctor"),
    ] {
        let output = run(&workspace, arguments);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stdout(&output).contains(words),
            "{arguments:?}: {}",
            stdout(&output)
        );
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&run(&workspace, &["completions", shell]));
        assert!(
            script.contains("sandbox-scope") && !script.contains("scope-is-final"),
            "{script}"
        );
    }
    let version = stdout(&run(&workspace, &["--version"]));
    assert!(
        version.starts_with(concat!("ahma_mcp ", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
}
