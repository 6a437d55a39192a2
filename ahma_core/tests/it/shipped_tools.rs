//! The tool files that come with the server, against the real programs.
//!
//! Plans are run directly: what matters here is that the programs take the command lines, not how they are confined.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use ahma_core::{
    call::{ExitMeaning, PlanSettings, Program, ToolCall, Work, plan},
    catalog::{Catalog, CatalogSettings},
    mtdf::{self, ToolSource},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{needs, pack_files};

struct Shipped {
    catalog: Catalog,
    scope: TempDir,
}

impl Shipped {
    fn load() -> Self {
        let sources: Vec<ToolSource> = pack_files()
            .iter()
            .map(|path| ToolSource {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                text: fs::read_to_string(path).unwrap(),
            })
            .collect();
        let report = mtdf::check_set(&sources);
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        let catalog = Catalog::build(&report.tools, CatalogSettings::default());
        Self {
            catalog,
            scope: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.scope.path()
    }

    /// The output of a call; panics unless it ends well.
    #[track_caller]
    fn call(&self, tool: &str, arguments: Value) -> String {
        match self.run(tool, arguments) {
            Ok(text) => text,
            Err(complaint) => panic!("{complaint}"),
        }
    }

    /// The complaint of a call; panics if it ends well.
    #[track_caller]
    fn fails(&self, tool: &str, arguments: Value) -> String {
        match self.run(tool, arguments) {
            Ok(text) => panic!("{tool} ended well:\n{text}"),
            Err(complaint) => complaint,
        }
    }

    /// Runs one call in the scope.
    #[track_caller]
    fn run(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let settings = PlanSettings {
            readable: Vec::new(),
            scope: self.path().to_owned(),
            scope_aliases: Vec::new(),
            also_allowed: Vec::new(),
            default_timeout: Duration::from_secs(60),
            force_sync: true,
        };
        let call = ToolCall {
            tool: tool.into(),
            arguments: arguments.as_object().unwrap().clone(),
        };
        let plan = plan(&self.catalog, &settings, call).unwrap_or_else(|error| panic!("{error}"));
        let Work::Command(command) = plan.work else {
            panic!("{tool} is a sequence")
        };
        let Program::Argv(argv) = command.program else {
            panic!("{tool} is a script")
        };
        let output = Command::new(&argv[0])
            .args(&argv[1..])
            .envs(&command.environment)
            .envs([
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_SYSTEM", "/dev/null"),
                ("PAGER", "cat"),
            ])
            .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
            .envs([
                ("GIT_COMMITTER_NAME", "A"),
                ("GIT_COMMITTER_EMAIL", "a@example.com"),
            ])
            .current_dir(&plan.directory)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let code = output.status.code().unwrap();
        if matches!(
            command.exit_codes.meaning(code),
            Some(ExitMeaning::Success | ExitMeaning::Findings)
        ) {
            Ok(text)
        } else {
            Err(format!("{argv:?} ended with {code}:\n{text}"))
        }
    }
}

/// Copies, because the tools directory is protected and what a link in it leads to is not.
/// Clients skip the question to their user where a hint allows it, so none is left to a default.
#[test]
fn every_tool_of_the_packs_states_its_hints_and_describes_itself() {
    fn check(tool: &Value, inherited: &Value, path: &str) {
        let mut hints = inherited.as_object().unwrap().clone();
        hints.extend(tool["annotations"].as_object().cloned().unwrap_or_default());
        let path = format!("{path} {}", tool["name"].as_str().unwrap_or_default());
        if let Some(children) = tool["subcommand"].as_array() {
            let hints = hints.into();
            return children.iter().for_each(|child| check(child, &hints, &path));
        }
        let reads_only = hints.get("readOnly") == Some(&json!(true));
        for hint in ["readOnly", "destructive", "idempotent", "openWorld"] {
            let implied = reads_only && hint == "destructive";
            assert!(
                implied || hints.contains_key(hint),
                "{path} does not say `{hint}`"
            );
        }
        let description = tool["description"].as_str().unwrap();
        let is_sentence = description.ends_with('.') && description.split_whitespace().count() >= 3;
        assert!(is_sentence, "{path}: {description}");
    }
    for file in pack_files() {
        let tool: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        check(&tool, &json!({}), &file.display().to_string());
    }
}

#[test]
fn the_tools_of_this_project_are_those_of_the_packs() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ahma/tools");
    for entry in fs::read_dir(own).unwrap() {
        let path = entry.unwrap().path();
        assert!(!path.is_symlink(), "{} is a link", path.display());
        let shipped = pack_files();
        let shipped = shipped
            .iter()
            .find(|shipped| shipped.file_name() == path.file_name());
        let shipped = shipped.unwrap_or_else(|| panic!("{} is in no pack", path.display()));
        assert!(
            fs::read(&path).unwrap() == fs::read(shipped).unwrap(),
            "cp {} {}",
            shipped.display(),
            path.display()
        );
    }
}

#[test]
fn git_takes_what_the_tool_file_makes_of_calls() {
    if !needs("git", &["--version"], "apt install git") {
        return;
    }
    let shipped = Shipped::load();
    let file = shipped.path().join("a file.txt");
    shipped.call("git_init", json!({ "initial-branch": "main" }));
    fs::write(&file, "one\ntwo\n").unwrap();
    shipped.call("git_add", json!({ "paths": ["a file.txt"] }));
    shipped.call(
        "git_commit",
        json!({ "message": "-first: it's \"quoted\"\n\n$BODY `x`\n" }),
    );
    let message = shipped.call("git_log", json!({ "format": "%B", "max-count": 1 }));
    assert_eq!(message.trim_end(), "-first: it's \"quoted\"\n\n$BODY `x`");
    // Names that agents bring from other tools.
    shipped.call("git_commit", json!({ "msg": "second", "allow_empty": true }));
    let message = shipped.call("git_log", json!({ "format": "%s", "limit": "1" }));
    assert_eq!(message.trim_end(), "second");
    shipped.call("git_reset", json!({ "hard": true, "commit": "HEAD~1" }));

    fs::write(&file, "one\n2\n").unwrap();
    let diff = shipped.call("git_diff", json!({ "unified": 0, "paths": ["a file.txt"] }));
    assert!(diff.contains("-two\n+2\n") && !diff.contains("\n one"), "{diff}");
    let status = shipped.call(
        "git_status",
        json!({ "porcelain": true, "untracked-files": "all" }),
    );
    assert_eq!(status, " M \"a file.txt\"\n");

    shipped.call(
        "git_stash_push",
        json!({ "message": "aside", "include-untracked": true }),
    );
    assert!(shipped.call("git_stash_list", json!({})).contains("aside"));
    shipped.call("git_stash_pop", json!({}));
    shipped.call("git_switch", json!({ "create": "topic" }));
    shipped.call("git_commit", json!({ "all": true, "message": "second" }));
    shipped.call("git_tag", json!({ "name": "v1", "message": "one" }));
    assert_eq!(shipped.call("git_describe", json!({ "tags": true })), "v1\n");
    assert_eq!(
        shipped.call("git_rev-parse", json!({ "abbrev-ref": true, "revision": "HEAD" })),
        "topic\n"
    );
    assert!(
        shipped
            .call("git_grep", json!({ "pattern": "one" }))
            .contains(":1:one")
    );
    assert_eq!(
        shipped.call("git_grep", json!({ "pattern": "-absent" })),
        "",
        "no match is no failure"
    );
    assert!(
        shipped
            .call("git_blame", json!({ "lines": "1,1", "file": "a file.txt" }))
            .contains("one")
    );
    assert!(
        shipped
            .call("git_show", json!({ "stat": true }))
            .contains("second")
    );
    shipped.call("git_remote_add", json!({ "name": "origin", "url": "." }));
    assert!(shipped.call("git_remote", json!({})).contains("origin\t."));
    shipped.call("git_branch", json!({ "list": true, "all": true }));
    shipped.call("git_reflog", json!({}));
    shipped.call(
        "git_restore",
        json!({ "source": "HEAD~1", "paths": ["a file.txt"] }),
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    shipped.call("git_reset", json!({ "hard": true }));
    shipped.call(
        "git_clone",
        json!({ "repository": ".", "directory": "copy", "depth": 1 }),
    );
    assert!(shipped.path().join("copy/a file.txt").exists());
}

#[test]
fn git_merges_give_up_and_go_on_without_an_editor() {
    if !needs("git", &["--version"], "apt install git") {
        return;
    }
    let shipped = Shipped::load();
    let file = shipped.path().join("a.txt");
    let commit = |text: &str| {
        fs::write(&file, text).unwrap();
        shipped.call("git_add", json!({ "all": true }));
        shipped.call("git_commit", json!({ "message": text }));
    };
    shipped.call("git_init", json!({ "initial-branch": "main" }));
    commit("one");
    shipped.call("git_switch", json!({ "create": "topic" }));
    commit("two");
    shipped.call("git_switch", json!({ "branch": "main" }));
    commit("three");
    let merge = json!({ "commits": ["topic"] });
    assert!(shipped.fails("git_merge", merge.clone()).contains("CONFLICT"));
    shipped.call("git_merge", json!({ "abort": true }));
    assert!(shipped.fails("git_merge", merge).contains("CONFLICT"));
    fs::write(&file, "solved").unwrap();
    shipped.call("git_add", json!({ "all": true }));
    shipped.call("git_merge", json!({ "continue": true }));
    shipped.call("git_revert", json!({ "commits": ["HEAD"], "mainline": 1 }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "three");
    shipped.call("git_commit", json!({ "amend": true }));
    shipped.fails("git_commit", json!({ "allow-empty": true }));
}

#[test]
fn git_pushes_a_branch_without_an_upstream() {
    if !needs("git", &["--version"], "apt install git") {
        return;
    }
    let shipped = Shipped::load();
    shipped.call(
        "git_init",
        json!({ "directory": "hub.git", "bare": true, "initial-branch": "main" }),
    );
    shipped.call(
        "git_clone",
        json!({ "repository": "hub.git", "directory": "work" }),
    );
    let work = |more: Value| {
        let mut arguments = more;
        arguments["working_directory"] = "work".into();
        arguments
    };
    let config = || fs::read_to_string(shipped.path().join("work/.git/config")).unwrap();
    let before = config();
    shipped.call("git_switch", work(json!({ "create": "topic" })));
    shipped.call(
        "git_commit",
        work(json!({ "allow-empty": true, "message": "one" })),
    );
    assert!(
        shipped
            .call("git_push", work(json!({})))
            .contains("topic -> topic")
    );
    shipped.call("git_switch", work(json!({ "create": "other" })));
    shipped.call("git_branch", work(json!({ "delete": true, "name": "topic" })));
    shipped.call("git_switch", work(json!({ "branch": "topic" })));
    shipped.call("git_pull", work(json!({ "remote": "origin", "branch": "topic" })));
    assert_eq!(config(), before, "nothing asked for a change of .git/config");
}

#[test]
fn make_takes_what_the_tool_file_makes_of_calls() {
    if !needs("make", &["--version"], "apt install make") {
        return;
    }
    let shipped = Shipped::load();
    fs::write(shipped.path().join("Rules"), "all:\n\t@echo $(WHAT)\n").unwrap();
    let arguments =
        json!({ "file": "Rules", "jobs": 2, "output-sync": "target", "targets": ["all", "WHAT=a b"] });
    assert_eq!(shipped.call("make", arguments), "a b\n");
}

#[test]
fn python_takes_what_the_tool_files_make_of_calls() {
    if !needs("python3", &["--version"], "apt install python3") {
        return;
    }
    let shipped = Shipped::load();
    let print = "import sys; print(sys.argv[1:])";
    let arguments = json!({ "code": print, "args": ["-c", "--", ""] });
    assert_eq!(shipped.call("python_code", arguments), "['-c', '--', '']\n");
    fs::write(shipped.path().join("show.py"), print).unwrap();
    assert_eq!(
        shipped.call("python", json!({ "script": "show.py", "args": ["--x"] })),
        "['--x']\n"
    );
    fs::write(shipped.path().join("x.json"), "[1]").unwrap();
    let arguments = json!({ "module": "json.tool", "args": ["--compact", "x.json"] });
    assert_eq!(shipped.call("python_module", arguments), "[1]\n");
}

#[test]
fn curl_takes_what_the_tool_file_makes_of_calls() {
    if !needs("curl", &["--version"], "apt install curl") {
        return;
    }
    let shipped = Shipped::load();
    fs::write(shipped.path().join("page"), "hello").unwrap();
    let url = format!("file://{}", shipped.path().join("page").display());
    shipped.call(
        "curl",
        json!({ "urls": [&url], "output": "copy", "user-agent": "-x-", "max-time": 5.5 }),
    );
    assert_eq!(fs::read_to_string(shipped.path().join("copy")).unwrap(), "hello");
    shipped.call("curl_download", json!({ "urls": [url], "output-dir": "a/b" }));
    assert_eq!(
        fs::read_to_string(shipped.path().join("a/b/page")).unwrap(),
        "hello"
    );
}

#[test]
fn ripgrep_takes_what_the_tool_files_make_of_calls() {
    if !needs("rg", &["--version"], "apt install ripgrep") {
        return;
    }
    let shipped = Shipped::load();
    fs::write(shipped.path().join("a.txt"), "x\n-needle\n").unwrap();
    let found = shipped.call(
        "rg",
        json!({ "pattern": "-needle", "paths": ["a.txt"], "glob": ["*.txt"] }),
    );
    assert_eq!(found, "a.txt:2:-needle\n");
    let by_other_names = json!({ "query": "-needle", "path": "a.txt" });
    assert_eq!(shipped.call("rg", by_other_names), "a.txt:2:-needle\n");
    let unnumbered = json!({ "pattern": "-needle", "line-number": false });
    assert_eq!(shipped.call("rg", unnumbered), "a.txt:-needle\n");
    shipped.call("rg", json!({ "pattern": "absent", "paths": ["."] }));
    assert_eq!(shipped.call("rg_files", json!({})), "a.txt\n");
}

#[test]
fn cargo_takes_what_the_tool_file_makes_of_calls() {
    if !needs("cargo", &["--version"], "install Rust from https://rustup.rs") {
        return;
    }
    let shipped = Shipped::load();
    shipped.call("cargo_new", json!({ "path": "demo", "lib": true, "vcs": "none" }));
    let metadata = shipped.call(
        "cargo_metadata",
        json!({ "working_directory": "demo", "no-deps": true, "offline": true }),
    );
    assert!(metadata.contains("\"name\":\"demo\""), "{metadata}");
    shipped.call("cargo_fmt", json!({ "working_directory": "demo", "check": true }));
}
