//! The directory that a call runs in.

use serde_json::json;
use test_support::{Era, Workspace, wait_for};

use crate::{
    calls::{shell, start, text},
    session::{echo, options},
};

#[test]
fn a_working_directory_that_is_not_there_is_a_mistake_of_the_call() {
    let workspace = Workspace::new();
    workspace.write_tool("say.json", &echo("say"));
    std::fs::write(workspace.scope().join("file"), "").expect("writable");
    std::fs::create_dir(workspace.scope().join("inside")).expect("writable");
    std::os::unix::fs::symlink("inside", workspace.scope().join("link")).expect("writable");
    // What is there is nothing that a client could learn from the answer.
    std::os::unix::fs::symlink("/no/such/place", workspace.scope().join("out")).expect("writable");
    let mut server = options(&workspace).open(Era::Modern);
    for (directory, problem) in [
        ("inside", None),
        ("link", None),
        ("missing", Some("does not exist")),
        ("file", Some("is not a directory")),
        (
            "out",
            Some("leads to `/no/such/place`, outside the sandbox scope"),
        ),
    ] {
        for (tool, mut arguments) in [
            ("sandboxed_shell", json!({"command": "pwd"})),
            ("say", json!({"format": "x"})),
        ] {
            arguments["working_directory"] = json!(directory);
            arguments["execution_mode"] = json!("synchronous");
            let result = server.tool(tool, arguments);
            assert_eq!(
                result["isError"] == true,
                problem.is_some(),
                "{tool} {directory}: {result}"
            );
            if let Some(problem) = problem {
                let words = format!(
                    "working_directory` `{}` {problem}",
                    workspace.scope().join(directory).display()
                );
                assert!(text(&result).contains(&words), "{tool} {directory}: {result}");
                assert!(
                    result.get("structuredContent").is_none(),
                    "something was started: {result}"
                );
            }
        }
    }
}

/// The same rule as for paths in arguments: what `--allow-write` opens is allowed, and a link opens nothing.
#[test]
fn a_working_directory_may_be_what_the_user_opened_and_nothing_else() {
    let workspace = Workspace::new();
    let opened = workspace.home().join("opened");
    let inside = opened.join("inside");
    std::fs::create_dir_all(&inside).expect("writable");
    let scope = workspace.scope();
    std::os::unix::fs::symlink(&inside, scope.join("granted")).expect("writable");
    std::os::unix::fs::symlink("/etc", scope.join("out")).expect("writable");
    std::os::unix::fs::symlink("out", scope.join("by-the-way")).expect("writable");
    let mut server = options(&workspace)
        .args(["--allow-write", opened.to_str().expect("text")])
        .open(Era::Modern);
    let mut run = |directory: &str| {
        let arguments = json!({"command": "touch here; pwd -P", "execution_mode": "synchronous", "working_directory": directory});
        server.tool("sandboxed_shell", arguments)
    };
    for directory in [inside.to_str().expect("text"), "granted"] {
        let result = run(directory);
        assert_eq!(
            text(&result).trim_end(),
            inside.to_str().expect("text"),
            "{result}"
        );
    }
    assert!(inside.join("here").exists());
    for (directory, leads_to) in [("out", "/etc"), ("by-the-way", "/etc"), ("out/ssl", "/etc/ssl")] {
        let result = run(directory);
        assert_eq!(result["isError"], true, "{result}");
        assert!(
            result.get("structuredContent").is_none(),
            "it was started: {result}"
        );
        let words = format!("leads to `{leads_to}`, outside the sandbox scope");
        assert!(text(&result).contains(&words), "{directory}: {}", text(&result));
    }
}

#[test]
fn a_missing_directory_is_listed_with_the_other_mistakes() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let result = server.tool(
        "sandboxed_shell",
        json!({"command": "pwd", "colour": 1, "working_directory": "missing"}),
    );
    assert_eq!(result["isError"], true);
    for words in ["`colour`", "does not exist"] {
        assert!(text(&result).contains(words), "{}", text(&result));
    }
}

#[test]
fn a_scope_that_is_made_anew_is_the_scope_again() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let scope = workspace.scope();
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Legacy);
        shell(&mut server, "echo old > file", "synchronous");
        let running = start(
            &mut server,
            "touch begun; while test -e file; do sleep 0.02; done; echo it is empty",
        );
        wait_for("the command to begin", || {
            scope.join("begun").exists().then_some(())
        });

        std::fs::remove_dir_all(&scope).unwrap();
        let refused = shell(&mut server, "true", "synchronous");
        assert!(
            text(&refused).contains("cannot be used any more") && text(&refused).contains("project"),
            "{tier}: {refused}"
        );

        std::fs::create_dir(&scope).unwrap();
        std::fs::write(scope.join("file"), "new").unwrap();
        let there = shell(&mut server, "cat file; echo made > made", "synchronous");
        assert_eq!(text(&there), "new", "{tier}: {there}");
        assert_eq!(std::fs::read_to_string(scope.join("made")).unwrap(), "made\n");
        shell(&mut server, "touch ../outside", "synchronous");
        assert!(!scope.with_file_name("outside").exists(), "{tier}");
        let ended = server.tool("await", json!({"operation_ids": [running]}));
        assert!(text(&ended).contains("it is empty"), "{tier}: {ended}");

        // A link in its place leads nowhere.
        std::fs::rename(&scope, workspace.home().join("moved")).unwrap();
        std::os::unix::fs::symlink(workspace.home(), &scope).unwrap();
        let refused = shell(&mut server, "touch here", "synchronous");
        assert!(
            text(&refused).contains("cannot be used any more"),
            "{tier}: {refused}"
        );
        assert!(!workspace.home().join("here").exists());
    }
}
