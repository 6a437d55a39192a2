//! The tools directory while the server runs, and what is said about tools that do not work.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    time::Duration,
};

use ahma_core::{
    catalog::CatalogSettings,
    mtdf::BUILT_IN_TOOLS,
    shell::TierChoice,
    toolbox::{self, AvailabilityChecker, ToolboxSettings},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, wait_for};
use tokio_util::sync::CancellationToken;

use crate::launchers::TestLauncher;
use crate::session::{echo, options};
use crate::terminal::is_alive;

const CHANGED: &str = "notifications/tools/list_changed";

fn wait_for_tools(server: &mut Server, expected: &[&str]) {
    wait_for(&format!("the tools {expected:?}"), || {
        (names_from_files(server) == expected).then_some(())
    });
}

/// Names of the tools that the server does not bring itself.
fn names_from_files(server: &mut Server) -> Vec<String> {
    let mut names = server.tool_names();
    names.retain(|name| !BUILT_IN_TOOLS.contains(&name.as_str()));
    names
}

/// Opens a session that hears of changes, and lists the tools once.
fn open(workspace: &Workspace, era: Era) -> Server {
    let mut server = options(workspace).open(era);
    if era == Era::Modern {
        server.request(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        );
        server.notification("notifications/subscriptions/acknowledged");
    }
    server.tool_names();
    server
}

#[test]
fn files_come_change_move_and_go() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        workspace.write_tool("a.json", &echo("alpha"));
        let mut server = open(&workspace, era);
        wait_for_tools(&mut server, &["alpha"]);

        workspace.write_tool("b.json", &echo("beta"));
        server.notification(CHANGED);
        wait_for_tools(&mut server, &["alpha", "beta"]);

        // As editors do it: a file beside, then a rename.
        let beside = workspace.tools().join(".b.json.swp");
        fs::write(&beside, echo("gamma").to_string()).expect("writable");
        fs::rename(&beside, workspace.tools().join("b.json")).expect("renamed");
        server.notification(CHANGED);
        wait_for_tools(&mut server, &["alpha", "gamma"]);

        fs::rename(
            workspace.tools().join("a.json"),
            workspace.tools().join("a.json.off"),
        )
        .expect("renamed");
        server.notification(CHANGED);
        wait_for_tools(&mut server, &["gamma"]);

        fs::remove_file(workspace.tools().join("b.json")).expect("it is there");
        server.notification(CHANGED);
        wait_for_tools(&mut server, &[]);
    }
}

#[test]
fn a_burst_of_changes_is_one_reload() {
    let workspace = Workspace::new();
    workspace.write_tool("a.json", &echo("alpha"));
    let mut server = open(&workspace, Era::Legacy);
    // Stopped meanwhile: for the server they come all at once, however slow this thread is.
    server.signal(Signal::STOP);
    for number in 0..50 {
        workspace.write_tool(
            &format!("burst{number:02}.json"),
            &echo(&format!("burst{number:02}")),
        );
    }
    server.signal(Signal::CONT);
    server.notification(CHANGED);
    assert_eq!(names_from_files(&mut server).len(), 51);
    let more = server.others_by_now();
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn a_change_that_changes_no_tool_is_not_told() {
    let workspace = Workspace::new();
    workspace.write_tool("a.json", &echo("alpha"));
    let mut server = options(&workspace).args(["--log-to-stderr"]).open(Era::Legacy);
    server.tool_names();
    let loads = |server: &Server| server.complaints().matches("tool files loaded").count();
    let before = loads(&server);
    fs::write(workspace.tools().join("notes.txt"), "not a tool").expect("writable");
    workspace.write_tool("a.json", &echo("alpha"));
    wait_for("the files to be read again", || {
        (loads(&server) > before).then_some(())
    });
    let told = server.others_by_now();
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn the_directory_may_go_and_come_back() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        let mut server = open(&workspace, era);
        wait_for_tools(&mut server, &[]);
        // It did not exist at all, nor did its parent.
        workspace.write_tool("a.json", &echo("alpha"));
        server.notification(CHANGED);
        wait_for_tools(&mut server, &["alpha"]);

        fs::remove_dir_all(workspace.scope().join(".ahma")).expect("it is there");
        server.notification(CHANGED);
        wait_for_tools(&mut server, &[]);

        workspace.write_tool("b.json", &echo("beta"));
        server.notification(CHANGED);
        wait_for_tools(&mut server, &["beta"]);

        fs::rename(workspace.tools(), workspace.scope().join("elsewhere")).expect("renamed");
        server.notification(CHANGED);
        wait_for_tools(&mut server, &[]);
        // The old directory is no longer ours.
        fs::write(
            workspace.scope().join("elsewhere/c.json"),
            echo("gamma").to_string(),
        )
        .expect("writable");
        workspace.write_tool("d.json", &echo("delta"));
        server.notification(CHANGED);
        wait_for_tools(&mut server, &["delta"]);
    }
}

#[test]
fn a_broken_edit_keeps_the_last_good_version_and_says_so() {
    let workspace = Workspace::new();
    workspace.write_tool("a.json", &echo("alpha"));
    workspace.write_tool("b.json", &echo("beta"));
    let mut server = open(&workspace, Era::Legacy);
    fs::write(
        workspace.tools().join("a.json"),
        r#"{"name": "alpha", "comand": "echo"}"#,
    )
    .expect("writable");
    let status = wait_for("the mistake to be noticed", || {
        let status = server.tool("status", json!({}))["structuredContent"]["tools"].clone();
        status.get("last_good_version_in_use").is_some().then_some(status)
    });
    assert_eq!(status["last_good_version_in_use"], json!(["a.json"]));
    let problems = status["problems"].to_string();
    assert!(
        problems.contains("a.json:1:") && problems.contains("comand"),
        "{problems}"
    );
    wait_for_tools(&mut server, &["alpha", "beta"]);
    assert_eq!(
        server.tool("alpha", json!({"format": "still here"}))["structuredContent"]["output"],
        "still here"
    );

    workspace.write_tool("a.json", &echo("mended"));
    server.notification(CHANGED);
    wait_for_tools(&mut server, &["beta", "mended"]);
    let tools = server.tool("status", json!({}))["structuredContent"]["tools"].clone();
    assert!(tools.get("problems").is_none(), "{tools}");
}

fn with_check(name: &str, check: Value) -> Value {
    let mut tool = echo(name);
    tool["availability_check"] = check;
    tool["install_instructions"] = json!("apt install it");
    tool
}

#[test]
fn a_tool_whose_program_is_missing_is_not_offered_and_says_why() {
    let workspace = Workspace::new();
    workspace.write_tool("here.json", &with_check("here", json!({"command": "true"})));
    workspace.write_tool(
        "gone.json",
        &with_check("gone", json!({"command": "no-such-program-here"})),
    );
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for_tools(&mut server, &["here"]);
    let refused = server.tool("gone", json!({"format": "x"}));
    assert_eq!(refused["isError"], true);
    let text = refused["content"][0]["text"].as_str().expect("text");
    assert!(
        text.contains("not available") && text.contains("apt install it"),
        "{text}"
    );
    let status = server.tool("status", json!({}))["structuredContent"]["tools"]["unavailable"].clone();
    assert_eq!(status[0]["tools"], json!(["gone"]));
}

#[test]
fn a_program_that_is_nowhere_is_missed_without_a_check() {
    let workspace = Workspace::new();
    let mut gone = echo("gone");
    gone["command"] = json!("no-such-program-here");
    workspace.write_tool("gone.json", &gone);
    workspace.write_tool("here.json", &echo("here"));
    let mut by_path = echo("by_path");
    by_path["command"] = json!("./not-yet");
    workspace.write_tool("by_path.json", &by_path);
    let mut server = options(&workspace).open(Era::Modern);
    // At once: the first list is the right one.
    let listed = server.call("tools/list", json!({}))["result"]["tools"].to_string();
    assert!(
        listed.contains("\"here\"") && listed.contains("\"by_path\""),
        "{listed}"
    );
    assert!(!listed.contains("\"gone\""), "{listed}");
    let refused = server.tool("gone", json!({"format": "x"}));
    let text = refused["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("`no-such-program-here` was not found"), "{text}");
}

#[test]
fn what_was_installed_since_is_found_by_the_next_call() {
    let workspace = Workspace::new();
    let mut late = with_check("late", json!("latecomer --version"));
    late["path_dirs"] = json!(["tools/bin"]);
    workspace.write_tool("late.json", &late);
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for_tools(&mut server, &[]);
    let call = json!({"format": "here"});
    assert_eq!(server.tool("late", call.clone())["isError"], true);
    write_program(&workspace, "latecomer", "exit 0");
    assert_eq!(server.tool("late", call)["content"][0]["text"], "here");
    server.notification(CHANGED);
    wait_for_tools(&mut server, &["late"]);
}

/// A program of the project, in a directory that only some tools look into.
fn write_program(workspace: &Workspace, name: &str, script: &str) {
    let program = workspace.scope().join("tools/bin").join(name);
    fs::create_dir_all(program.parent().expect("it has one")).expect("writable");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("writable");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("ours");
}

/// Waits until the check of the tool has failed: a call is not held up by one that still runs.
fn wait_for_refusal(server: &mut Server, tool: &str) -> String {
    wait_for("the check to fail", || {
        let result = server.tool(tool, json!({"format": "here"}));
        (result["isError"] == json!(true)).then(|| result["content"][0]["text"].to_string())
    })
}

/// Programs of the project stand before those of PATH for the tools that say so, and for their checks, which have the
/// variables of the tool as well.
#[test]
fn a_tool_finds_the_programs_of_its_project() {
    let workspace = Workspace::new();
    let mut own = with_check("own", json!("sh -c 'test \"$WANTED\" = yes && env printf'"));
    own["path_dirs"] = json!(["tools/bin"]);
    own["env"] = json!({"WANTED": "yes"});
    workspace.write_tool("own.json", &own);
    workspace.write_tool("other.json", &echo("other"));
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for_refusal(&mut server, "own");

    write_program(&workspace, "printf", "/usr/bin/printf 'own %s' \"$*\"");
    for (tool, said) in [("own", "own hello"), ("other", "hello")] {
        let answer = server.tool(tool, json!({"format": "hello"}));
        assert_eq!(answer["content"][0]["text"], said, "{tool}");
    }
}

/// A complaint about a file tells what stands in it, and a command could have put the link there.
#[test]
fn a_link_that_comes_later_is_not_followed() {
    let workspace = Workspace::new();
    let elsewhere = workspace.home().join("elsewhere.json");
    fs::write(&elsewhere, echo("linked").to_string()).expect("writable");
    fs::create_dir_all(workspace.tools()).expect("writable");
    symlink(&elsewhere, workspace.tools().join("linked.json")).expect("writable");
    let secret = workspace.home().join("secret.json");
    fs::write(&secret, r#"{"secret_field": 1}"#).expect("writable");
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for_tools(&mut server, &["linked"]);
    symlink(&secret, workspace.tools().join("later.json")).expect("writable");
    let problems = wait_for("the link to be noticed", || {
        let problems = server.tool("status", json!({}))["structuredContent"]["tools"]["problems"].to_string();
        problems.contains("later.json").then_some(problems)
    });
    assert!(!problems.contains("secret_field"), "{problems}");
    assert!(problems.contains("start it again"), "{problems}");
    wait_for_tools(&mut server, &["linked"]);
}

/// A check runs code of the project: it is over when nothing of it is left, and then its traces are looked at.
#[test]
fn a_check_leaves_nothing_behind_that_could_act_later() {
    for tier in ["full", "core"] {
        let workspace = Workspace::new();
        let scope = workspace.scope();
        let script = format!(
            "(trap '' TERM; touch begun; sleep 1; mkdir .vscode; touch .vscode/tasks.json) & \
             until [ -e begun ]; do sleep 0.02; done # {}",
            scope.display()
        );
        let check = json!({"command": "sh", "args": ["-c", script]});
        workspace.write_tool("a.json", &with_check("alpha", check));
        let mut server = options(&workspace)
            .args(["--sandbox-tier", tier])
            .open(Era::Legacy);
        wait_for_tools(&mut server, &["alpha"]);
        wait_for("the check to begin", || {
            scope.join("begun").exists().then_some(())
        });
        let mark = scope.display().to_string();
        wait_for("the end of what the check started", || {
            let mut processes = fs::read_dir("/proc").expect("readable").flatten();
            let is_marked = |process: fs::DirEntry| {
                fs::read(process.path().join("cmdline")).is_ok_and(|line| {
                    line.starts_with(b"sh\0") && String::from_utf8_lossy(&line).contains(&mark)
                })
            };
            (!processes.any(is_marked)).then_some(())
        });
        // The guard looks when they are gone.
        wait_for("nothing to be left", || {
            (!scope.join(".vscode").exists()).then_some(())
        });
    }
}

#[test]
fn a_slow_check_holds_up_neither_the_list_nor_a_call_and_its_answer_is_told() {
    let workspace = Workspace::new();
    let check = json!({"command": "sh", "args": ["-c", "until [ -e gate ]; do sleep 0.02; done; exit 1"]});
    workspace.write_tool("slow.json", &with_check("slow", check.clone()));
    workspace.write_tool("same.json", &with_check("same", check));
    let mut server = open(&workspace, Era::Legacy);
    wait_for_tools(&mut server, &["same", "slow"]);
    assert_eq!(server.tool("slow", json!({"format": "here"}))["isError"], false);
    fs::write(workspace.scope().join("gate"), "").expect("writable");
    for tool in ["same", "slow"] {
        let told = wait_for_refusal(&mut server, tool);
        assert!(
            told.contains("exit code 1") && told.contains("apt install it"),
            "{told}"
        );
    }
    wait_for_tools(&mut server, &["same", "slow"]);
}

#[test]
fn a_tool_that_was_missing_stays_so_until_its_check_says_otherwise() {
    let workspace = Workspace::new();
    let slow_later = "sh -c 'test ! -e again || sleep 1000; exit 1'";
    workspace.write_tool("gone.json", &with_check("gone", json!(slow_later)));
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for_refusal(&mut server, "gone");
    fs::write(workspace.scope().join("again"), "").expect("writable");
    workspace.write_tool("here.json", &echo("here"));
    server.notification(CHANGED);
    wait_for_tools(&mut server, &["gone", "here"]);
    let status = server.tool("status", json!({}))["structuredContent"]["tools"]["unavailable"].clone();
    assert_eq!(status[0]["tools"], json!(["gone"]));
}

#[test]
fn a_call_waits_for_the_check_of_its_tool_and_for_no_other() {
    let workspace = Workspace::new();
    // A number that no other process sleeps for.
    let seconds = format!("91000.{}", std::process::id());
    workspace.write_tool(
        "slow.json",
        &with_check("slow", json!(format!("sleep {seconds}"))),
    );
    workspace.write_tool("late.json", &with_check("late", json!("test -e ready")));
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for("the other check", || is_alive(&seconds).then_some(()));
    let call = json!({"format": "here"});
    wait_for_refusal(&mut server, "late");
    fs::write(workspace.scope().join("ready"), "").expect("writable");
    assert_eq!(server.tool("late", call)["content"][0]["text"], "here");
    assert!(is_alive(&seconds), "the other check is over");
}

/// Work that the end of a server waits for.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_is_not_waited_for_any_more_ends_at_once() {
    let TestLauncher {
        launcher,
        scope,
        private: _private,
    } = TestLauncher::start(TierChoice::Highest);
    let tools = tempfile::tempdir().expect("a directory");
    let slow = with_check("slow", json!("sh -c 'touch begun; sleep 86414'"));
    fs::write(tools.path().join("slow.json"), slow.to_string()).expect("writable");
    // Without being stopped it would go on for longer than this waits.
    let prober = AvailabilityChecker::new(launcher.clone()).with_timeout(Duration::from_secs(86_400));
    let shutdown = CancellationToken::new();
    let settings = ToolboxSettings {
        directory: tools.path().to_owned(),
        scope: scope.path().to_owned(),
        catalog: CatalogSettings::default(),
        probes: true,
        reload: false,
        keep_sources: false,
    };
    let _toolbox = toolbox::open(settings, prober.clone(), shutdown.clone());
    wait_for("the check to begin", || {
        scope.path().join("begun").exists().then_some(())
    });
    shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(60), prober.ended());
    ended.await.expect("it is stopped");
    launcher.shutdown().await;
}

/// A program of the project, which commands find before those of PATH.
fn project_program(workspace: &Workspace, name: &str, script: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let directory = workspace.scope().join(".venv/bin");
    fs::create_dir_all(&directory).expect("writable");
    let file = directory.join(name);
    fs::write(&file, script).expect("writable");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("ours");
    file
}

#[test]
fn a_program_that_disappears_is_noticed_at_the_call_with_its_install_instructions() {
    let workspace = Workspace::new();
    let file = project_program(&workspace, "ghost", "#!/bin/sh\necho here\n");
    workspace.write_tool(
        "ghost.json",
        &json!({ "description": "Prints.", "command": "ghost", "synchronous": true,
                 "install_instructions": "Install ghost: apt install ghost" }),
    );
    let mut server = options(&workspace).open(Era::Modern);
    assert_eq!(server.tool("ghost", json!({}))["content"][0]["text"], "here\n");
    fs::remove_file(file).expect("ours");
    let failed = server.tool("ghost", json!({}));
    let text = failed["content"][0]["text"].as_str().expect("text");
    assert_eq!(failed["isError"], true, "{text}");
    assert!(
        text.starts_with("exit 127 ") && text.contains("`ghost` was not found"),
        "{text}"
    );
    assert!(text.contains("apt install ghost"), "{text}");
}

#[test]
fn a_program_that_fails_inside_the_sandbox_is_told_apart_from_one_that_is_missing() {
    let workspace = Workspace::new();
    project_program(&workspace, "sick", "#!/bin/sh\necho no licence; exit 3\n");
    for name in ["sick", "no-such-program-here"] {
        workspace.write_tool(
            &format!("{name}.json"),
            &json!({ "description": "Prints.", "command": name, "availability_check": format!("{name} --version"),
                     "install_instructions": format!("Install {name}.") }),
        );
    }
    let mut server = options(&workspace).open(Era::Legacy);
    wait_for("the result of the check", || {
        let status =
            server.tool("status", json!({}))["structuredContent"]["tools"]["unavailable"].to_string();
        status.contains("\"sick\"").then_some(())
    });
    let mut refusal = |name: &str| {
        let refused = server.tool(name, json!({}));
        refused["content"][0]["text"].as_str().expect("text").to_owned()
    };
    let (sick, missing) = (refusal("sick"), refusal("no-such-program-here"));
    assert!(
        sick.contains("exit code 3: no licence (inside the sandbox; the program is there: ")
            && sick.contains(".venv/bin/sick"),
        "{sick}"
    );
    assert!(
        missing.contains("was not found") && missing.contains("Install no-such-program-here."),
        "{missing}"
    );
}
