//! The shell that only reads: reading works, the kernel refuses the rest, nothing is left running.

use std::{fs, process::Command};

use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ahma_mcp");

const TIERS: [&str; 2] = ["full", "core"];

fn open(workspace: &Workspace, tier: &str) -> Server {
    ServerOptions::new(PROGRAM, workspace)
        .args(["--sandbox-tier", tier])
        .open(Era::Legacy)
}

fn run(server: &mut Server, script: &str) -> (String, bool) {
    let result = server.tool("readonly_shell", json!({ "command": script }));
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["isError"] == json!(true))
}

/// A repository with one commit and one change.
fn repository() -> Workspace {
    let workspace = Workspace::new();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@x"];
        let mut command = Command::new("git");
        command
            .args(identity)
            .args(arguments)
            .current_dir(workspace.scope());
        assert!(command.status().unwrap().success(), "{arguments:?}");
    };
    fs::write(workspace.scope().join("a.txt"), "one\n").unwrap();
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    fs::write(workspace.scope().join("a.txt"), "two\n").unwrap();
    workspace
}

#[test]
fn looking_around_works() {
    for tier in TIERS {
        let workspace = repository();
        let server = &mut open(&workspace, tier);
        for (script, expected) in [
            ("cat a.txt", "two"),
            ("ls -a | grep -x .git", ".git"),
            ("grep -rn two . | cat", "a.txt:1:two"),
            ("git status --short", " M a.txt"),
            ("git log --oneline | cat", "first"),
            ("git diff", "+two"),
            ("f=$(mktemp) && echo kept > $f && cat $f", "kept"),
            ("cat <<< here; cat <(echo there)", "there"),
            ("echo gone > /dev/null && echo quiet", "quiet"),
        ] {
            let (text, failed) = run(server, script);
            assert!(!failed && text.contains(expected), "{tier} {script}: {text}");
            assert!(!text.contains("index.lock"), "{tier} {script}: {text}");
        }
    }
}

#[test]
fn nothing_can_be_changed_and_nothing_reached() {
    for tier in TIERS {
        let workspace = repository();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _socket = std::os::unix::net::UnixListener::bind(workspace.scope().join("s")).unwrap();
        let server = &mut open(&workspace, tier);
        let tcp = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        let udp = format!("echo x > /dev/udp/127.0.0.1/{port}");
        for script in [
            "echo x > a.txt",
            "echo x >> a.txt",
            "echo x > new",
            "mv a.txt b.txt",
            "rm -f a.txt",
            "chmod 600 a.txt",
            "touch -d 2001-01-01 a.txt",
            "ln a.txt hard",
            "ln -s a.txt soft",
            "ln a.txt $TMPDIR/hard && echo x > $TMPDIR/hard",
            "mkdir d",
            "mkfifo p",
            "truncate -s 0 a.txt",
            "python3 -c 'import os; os.open(\"a.txt\", os.O_RDONLY | os.O_TRUNC)'",
            "python3 -c 'import os; os.setxattr(\"a.txt\", \"user.x\", b\"y\")'",
            "git -c user.name=x -c user.email=x@x commit -qam second",
            "git checkout -q -- a.txt",
            "git config core.fsmonitor evil",
            tcp.as_str(),
            udp.as_str(),
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"s\")'",
            "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 0))'",
        ] {
            let (text, failed) = run(server, script);
            assert!(failed, "{tier} {script}: {text}");
        }
        assert_eq!(
            fs::read_to_string(workspace.scope().join("a.txt")).unwrap(),
            "two\n"
        );
        let mut names: Vec<_> = fs::read_dir(workspace.scope())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, [".git", "a.txt", "s"], "{tier}");
    }
}

/// A pipe in a shared temporary directory would lead to a process that may write.
#[test]
fn temporary_files_are_not_shared_with_commands_that_write() {
    for tier in TIERS {
        let workspace = Workspace::new();
        let server = &mut open(&workspace, tier);
        server.tool(
            "sandboxed_shell",
            json!({ "command": "mkfifo $TMPDIR/pipe; echo x > $TMPDIR/file", "execution_mode": "synchronous" }),
        );
        let (text, _) = run(server, "ls -A $TMPDIR");
        assert!(!text.contains("pipe") && !text.contains("file"), "{tier}: {text}");
    }
}

#[test]
fn nothing_is_left_when_the_server_ends() {
    for tier in TIERS {
        let workspace = Workspace::new();
        let server = &mut open(&workspace, tier);
        let (text, _) = run(server, "sleep 4711 & setsid sleep 4712 & echo started");
        assert!(text.contains("started"), "{text}");
        let processes = test_support::children(server.pid());
        assert!(processes.len() >= 2, "{tier}: the jail of its own: {processes:?}");
        server.close_input();
        server.wait();
        for pid in processes {
            assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{tier}: {pid}");
        }
    }
}

#[test]
fn it_is_offered_as_reading_only_and_not_without_a_sandbox() {
    let workspace = Workspace::new();
    let listed = |server: &mut Server| -> Option<Value> {
        let tools = server.call("tools/list", json!({}))["result"]["tools"].take();
        let mut tools = tools.as_array().cloned().unwrap().into_iter();
        tools.find(|tool| tool["name"] == "readonly_shell")
    };
    let tool = listed(&mut open(&workspace, "core")).unwrap();
    for (hint, value) in [
        ("readOnlyHint", true),
        ("destructiveHint", false),
        ("idempotentHint", true),
        ("openWorldHint", false),
    ] {
        assert_eq!(tool["annotations"][hint], json!(value), "{tool}");
    }
    let mut without = ServerOptions::new(PROGRAM, &workspace)
        .args(["--no-sandbox"])
        .open(Era::Legacy);
    assert_eq!(listed(&mut without), None);
}
