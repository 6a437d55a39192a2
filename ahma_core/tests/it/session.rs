//! Sessions over stdio: opening, garbage, the end. Raw lines, both eras.

use std::{
    io::{BufRead as _, BufReader},
    os::fd::OwnedFd,
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use test_support::{Era, Server, ServerOptions, Workspace, wait_for};

pub(crate) fn options(workspace: &Workspace) -> ServerOptions {
    ServerOptions::new(env!("CARGO_BIN_EXE_ahma_mcp"), workspace)
}

/// A tool that prints its arguments, each on a line.
pub(crate) fn echo(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Prints what it is given.",
        "command": "printf",
        "synchronous": true,
        "positional_args": [
            {"name": "format", "type": "string", "description": "How to print.", "required": true},
            {"name": "words", "type": "array", "items": {"type": "string"}, "description": "What to print."},
        ],
    })
}

#[test]
fn both_eras_are_answered_in_kind() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).start();
    let opened = server.open(Era::Legacy);
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(opened["result"]["serverInfo"]["name"], "ahma_mcp");
    assert_eq!(opened["result"]["capabilities"]["tools"]["listChanged"], true);
    let instructions = opened["result"]["instructions"].as_str().expect("text");
    assert!(
        instructions.contains("A call answers when its command ends"),
        "{instructions}"
    );
    assert!(server.call("ping", json!({}))["result"].is_object());
    assert!(
        server.call("tools/list", json!({}))["result"]
            .get("resultType")
            .is_none()
    );

    let mut server = options(&workspace).start();
    let discovered = server.open(Era::Modern);
    let versions = discovered["result"]["supportedVersions"]
        .as_array()
        .expect("a list of versions")
        .clone();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    let listed = server.call("tools/list", json!({}));
    assert_eq!(listed["result"]["resultType"], "complete");
    assert!(listed["result"]["ttlMs"].is_u64(), "{listed}");
    for removed in ["ping", "logging/setLevel"] {
        let answer = server.call(removed, json!({"level": "info"}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

#[test]
fn a_cursor_that_was_never_given_out_is_refused() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    for list in ["tools/list", "resources/list", "resources/templates/list"] {
        let answer = server.call(list, json!({"cursor": "bogus"}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[test]
fn one_connection_carries_both_eras_after_a_handshake() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert_eq!(
        server.call("tools/list", json!({"_meta": meta}))["result"]["resultType"],
        "complete"
    );
    assert!(
        server.call("tools/list", json!({}))["result"]
            .get("resultType")
            .is_none()
    );
}

#[test]
fn tools_are_listed_in_the_same_order_in_every_run() {
    let workspace = Workspace::new();
    for name in ["zeta", "alpha", "mid"] {
        workspace.write_tool(&format!("{name}.json"), &echo(name));
    }
    let mut lists = Vec::new();
    for era in Era::BOTH {
        for _ in 0..2 {
            lists.push(options(&workspace).open(era).tool_names());
        }
    }
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]), "{lists:?}");
    let position = |name: &str| lists[0].iter().position(|listed| listed == name).expect(name);
    let own = [position("alpha"), position("mid"), position("zeta")];
    assert!(own.is_sorted(), "{lists:?}");
}

#[test]
fn garbage_is_answered_and_the_session_goes_on() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).start();
        // Before anything else, where a careless server gives up.
        server.send_bytes(b"hello\n\n   \n\xff\xfe\xfd\n");
        server.notify("notifications/initialized", json!({}));
        server.notify("notifications/cancelled", json!({"requestId": 4}));
        server.send(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
        server.open(era);
        server.send_bytes(b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\"\n");
        server.send_bytes(b"\"\xc3\x28\"\n[]\n{}\nnull\n");
        server.send(&json!([{"jsonrpc": "2.0", "id": 8, "method": "ping"}]));
        server.notify("notifications/of/some/other/protocol", json!([1, 2]));
        assert!(server.tool_names().contains(&"await".to_owned()), "{era:?}");
        let codes: Vec<i64> = server
            .others_by_now()
            .iter()
            .filter_map(|message| message["error"]["code"].as_i64())
            .collect();
        assert_eq!(
            codes.iter().filter(|code| **code == -32700).count(),
            4,
            "{codes:?}"
        );
        assert_eq!(
            codes.iter().filter(|code| **code == -32600).count(),
            4,
            "{codes:?}"
        );
    }
}

#[test]
fn a_line_of_twenty_megabytes_is_refused_and_the_next_one_read() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let mut line = vec![b'x'; 20_000_000];
    line.push(b'\n');
    server.send_bytes(&line);
    let refusal = server.expect("a refusal", |message| message.get("error").is_some());
    assert_eq!(refusal["error"]["code"], -32600);
    let large = "y".repeat(4_000_000);
    let answer = server.call("tools/call", json!({"name": large, "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602);
    assert!(server.tool_names().contains(&"await".to_owned()));
}

#[test]
fn a_repeated_id_does_not_disturb_the_request_that_has_it() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let call = json!({
        "jsonrpc": "2.0", "id": 500, "method": "tools/call",
        "params": {"name": "sandboxed_shell", "arguments": {
            "command": "until [ -e gate ]; do sleep 0.02; done; echo first", "execution_mode": "synchronous"}},
    });
    server.send(&call);
    server.send(&call);
    let refusal = server.expect("a refusal", |message| message.get("error").is_some());
    assert_eq!(refusal["error"]["code"], -32600);
    assert!(
        refusal.get("id").is_none(),
        "it would be taken for the answer: {refusal}"
    );
    std::fs::write(workspace.scope().join("gate"), "").unwrap();
    assert_eq!(
        server.answer(500)["result"]["structuredContent"]["output"],
        "first\n"
    );
    // Now the id is free again.
    server.send(&call);
    assert_eq!(
        server.answer(500)["result"]["structuredContent"]["output"],
        "first\n"
    );
}

#[test]
fn a_request_of_the_wrong_form_is_told_apart_from_an_unknown_one() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    for (method, params, code) in [
        ("tools/call", json!({"nom": "await"}), -32602),
        ("tools/call", json!({"name": 5}), -32602),
        ("no/such/method", json!({}), -32601),
        ("resources/read", json!({"uri": "ahma://nothing"}), -32002),
        ("ping", json!([1]), -32602),
        ("ping", json!({"_meta": 3}), -32602),
        ("resources/read", json!([1]), -32602),
        ("tools/list", json!({"_meta": 3}), -32602),
    ] {
        assert_eq!(server.call(method, params)["error"]["code"], code, "{method}");
    }
}

#[test]
fn requests_piped_in_are_answered_although_input_has_ended() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let list = server.request("tools/list", json!({}));
    let ping = server.request("ping", json!({}));
    server.close_input();
    assert!(server.answer(list)["result"]["tools"].is_array());
    assert!(server.answer(ping)["result"].is_object());
    assert_eq!(server.wait().code(), Some(0));
}

/// Work that may be going on when the end comes.
fn busy(server: &mut Server) {
    server.request(
        "tools/call",
        json!({"name": "sandboxed_shell", "arguments": {"command": MARKED, "execution_mode": "synchronous"}}),
    );
    let started = server.tool(
        "sandboxed_shell",
        json!({"command": MARKED, "execution_mode": "asynchronous"}),
    );
    let id = started["structuredContent"]["operation_id"].clone();
    server.request(
        "tools/call",
        json!({"name": "await", "arguments": {"operation_ids": [id]}}),
    );
}

/// Longer than any test; found by its odd number.
const MARKED: &str = "setsid sleep 86413 & sleep 86413";

fn marked_processes(scope: &std::path::Path) -> Vec<i32> {
    let of_process = |pid: i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        // In a pid namespace or not: the working directory tells whose process it is.
        let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        (command == b"sleep\086413\0" && directory == scope).then_some(pid)
    };
    let pids = std::fs::read_dir("/proc").expect("readable").flatten();
    pids.filter_map(|entry| of_process(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// As `nohup` starts it.
#[test]
fn a_hang_up_that_was_ignored_from_the_start_stays_ignored() {
    let workspace = Workspace::new();
    let script = "trap '' HUP; exec \"$0\" \"$@\"";
    let mut server = ServerOptions::new("/bin/sh", &workspace)
        .args(["-c", script, env!("CARGO_BIN_EXE_ahma_mcp")])
        .open(Era::Legacy);
    server.signal(Signal::HUP);
    assert!(server.call("ping", json!({}))["result"].is_object());
    server.signal(Signal::TERM);
    assert!(server.wait().success());
}

#[test]
fn the_end_leaves_nothing_behind() {
    type End = fn(&mut Server);
    let ends: [(&str, End, Option<i32>); 5] = [
        ("end of input", |server| server.close_input(), Some(0)),
        ("SIGTERM", |server| server.signal(Signal::TERM), Some(0)),
        ("SIGINT", |server| server.signal(Signal::INT), Some(0)),
        ("SIGQUIT", |server| server.signal(Signal::QUIT), Some(0)),
        ("SIGKILL", |server| server.signal(Signal::KILL), None),
    ];
    for era in Era::BOTH {
        for (name, end, code) in ends {
            let workspace = Workspace::new();
            let mut server = options(&workspace).open(era);
            busy(&mut server);
            wait_for("four sleeping processes", || {
                (marked_processes(&workspace.scope()).len() == 4).then_some(())
            });
            end(&mut server);
            let status = server.wait();
            assert_eq!(status.code(), code, "{name}, {era:?}: {}", server.complaints());
            if code.is_some() {
                assert_eq!(marked_processes(&workspace.scope()), [0; 0], "{name}, {era:?}");
            } else {
                wait_for("nothing to be left", || {
                    marked_processes(&workspace.scope()).is_empty().then_some(())
                });
            }
        }
    }
}

/// A check may take ten seconds, and no request waits for its answer any more.
#[test]
fn the_end_leaves_no_check_of_a_tool() {
    for signal in [None, Some(Signal::TERM)] {
        let workspace = Workspace::new();
        let mut slow = echo("slow");
        slow["availability_check"] = json!("sleep 86413");
        workspace.write_tool("slow.json", &slow);
        let mut server = options(&workspace).open(Era::Legacy);
        wait_for("the check to sleep", || {
            (marked_processes(&workspace.scope()).len() == 1).then_some(())
        });
        match signal {
            Some(signal) => server.signal(signal),
            None => server.close_input(),
        }
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(marked_processes(&workspace.scope()), [0; 0], "{signal:?}");
    }
}

#[test]
fn a_client_that_stops_listening_is_gone() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    server.close_output();
    wait_for("the server to notice", || {
        let _ = server.try_send_bytes(b"garbage\n");
        (!server.is_running()).then_some(())
    });
    assert_eq!(server.wait().code(), Some(0));
}

/// A terminal is read by a thread that waits in the kernel, as is a pipe that belongs to another user.
#[test]
fn input_that_cannot_be_polled_holds_up_no_end() {
    let workspace = Workspace::new();
    let (user, terminal) = terminal();
    let mut server = options(&workspace)
        .command()
        .stdin(terminal)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    rustix::io::write(&user, format!("{hello}\n").as_bytes()).expect("a terminal");
    let mut answer = String::new();
    BufReader::new(server.stdout.take().expect("piped"))
        .read_line(&mut answer)
        .expect("an answer");
    assert!(answer.contains("supportedVersions"), "{answer}");
    let pid = Pid::from_raw(server.id().try_into().expect("a number")).expect("not zero");
    kill_process(pid, Signal::TERM).expect("the server is there");
    let status = wait_for("the server to end", || server.try_wait().expect("our child"));
    assert_eq!(status.code(), Some(0));
}

/// A terminal: the user's side and the program's.
fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::{
        fs::{Mode, OFlags},
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    };
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    rustix::io::fcntl_setfd(&user, rustix::io::FdFlags::CLOEXEC).expect("ours");
    grantpt(&user).expect("ours");
    unlockpt(&user).expect("ours");
    let name = ptsname(&user, Vec::new()).expect("it has one");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let program = rustix::fs::open(name, flags, Mode::empty()).expect("its other side");
    (user, program)
}

#[test]
fn an_idle_server_ends_at_once() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        server.close_input();
        assert_eq!(server.wait().code(), Some(0));
    }
    let mut server = options(&workspace).start();
    server.close_input();
    assert_eq!(
        server.wait().code(),
        Some(0),
        "without a session: {}",
        server.complaints()
    );
}
