//! Progress notifications: when they come, and when they stop.

use std::time::Instant;

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace};

use crate::session::options;

#[test]
fn a_synchronous_call_is_reported_on_after_it_answered() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).args(["--sync-wait", "1s"]).open(Era::Legacy);
    server.call("logging/setLevel", json!({"level": "info"}));
    let params = json!({
        "name": "sandboxed_shell",
        "arguments": {
            "command": "echo early; until [ -e gate ]; do sleep 0.02; done; echo late; until [ -e end ]; do sleep 0.02; done",
            "execution_mode": "synchronous",
        },
        "_meta": {"progressToken": "mine"},
    });
    let id = server.request("tools/call", params);
    let answer = server.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["status"], "running");
    std::fs::write(workspace.scope().join("gate"), "").expect("writable");
    // Each line once: the first while the call waited, the second while none did.
    let mut output = String::new();
    while !output.contains("late") {
        let told = server.notification("notifications/message");
        output.push_str(told["params"]["data"]["output"].as_str().expect("output"));
    }
    assert_eq!(output, "early\nlate\n");
    std::fs::write(workspace.scope().join("end"), "").expect("writable");
    let end = server.expect("the end", |message| {
        message["method"] == "notifications/progress" && message.to_string().contains("completed")
    });
    assert_eq!(end["params"]["progressToken"], "mine", "{end}");
}

#[test]
fn progress_rises_while_a_request_is_open_and_stops_with_its_answer() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let request = server.request(
            "tools/call",
            json!({
                "name": "sandboxed_shell",
                "arguments": {"command": "until [ -e gate ]; do echo step; sleep 0.1; done; rm gate", "execution_mode": "synchronous"},
                "_meta": {"progressToken": "tok"},
            }),
        );
        let mut values = Vec::new();
        let mut messages = String::new();
        loop {
            let message = server.expect("progress or the answer", |_| true);
            if message["id"] == request {
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            assert_eq!(message["params"]["progressToken"], "tok");
            values.push(message["params"]["progress"].as_f64().expect("a number"));
            messages.push_str(message["params"]["message"].as_str().expect("text"));
            if values.len() >= 2 && messages.contains("step") {
                std::fs::write(workspace.scope().join("gate"), "").expect("writable");
            }
        }
        assert!(values.len() >= 2, "{values:?}");
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        assert!(messages.contains("step"), "{messages}");
        let late = server.others_by_now();
        assert!(late.is_empty(), "after the answer: {late:?}");
    }
}

/// Makes a synchronous call with a progress token, and counts the notifications until its answer.
fn count_progress(server: &mut Server, command: &str) -> usize {
    let arguments = json!({"command": command, "execution_mode": "synchronous"});
    let call = json!({"name": "sandboxed_shell", "arguments": arguments, "_meta": {"progressToken": 1}});
    let request = server.request("tools/call", call);
    let mut count = 0;
    while server.expect("progress or the answer", |_| true)["id"] != request {
        count += 1;
    }
    count
}

#[test]
fn a_chatty_command_is_told_of_at_most_five_times_a_second() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let asked = Instant::now();
    let count = count_progress(&mut server, "for i in $(seq 60); do echo $i; sleep 0.02; done");
    let allowed = asked.elapsed().as_millis() / 200 + 1;
    assert!(count as u128 <= allowed, "{count} in {:?}", asked.elapsed());
    assert!(count > 0);
}

#[test]
fn a_silent_command_is_told_of_by_a_heartbeat() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let arguments =
        json!({"command": "until [ -e seen ]; do sleep 0.1; done", "execution_mode": "synchronous"});
    let call = json!({"name": "sandboxed_shell", "arguments": arguments, "_meta": {"progressToken": 1}});
    let request = server.request("tools/call", call);
    // One when it begins to run, and one after ten quiet seconds.
    for _ in 0..2 {
        server.notification("notifications/progress");
    }
    std::fs::write(workspace.scope().join("seen"), "").expect("writable");
    server.answer(request);
}

#[test]
fn the_end_of_an_asynchronous_operation_is_pushed_to_the_legacy_era_only() {
    let workspace = Workspace::new();
    let call = |meta: Value| json!({"name": "sandboxed_shell", "arguments": {"command": "echo pushed"}, "_meta": meta});
    let mut server = options(&workspace).open(Era::Legacy);
    let request = server.request("tools/call", call(json!({"progressToken": 77})));
    let id = server.answer(request)["result"]["structuredContent"]["operation_id"].clone();
    let pushed = server.notification("notifications/progress");
    assert_eq!(pushed["params"]["progressToken"], 77);
    let message = pushed["params"]["message"].as_str().expect("text");
    assert!(
        message.contains("pushed") && message.contains("completed"),
        "{message}"
    );
    assert!(message.contains(id.as_str().expect("an id")), "{message}");

    let request = server.request("tools/call", call(json!({})));
    let id = server.answer(request)["result"]["structuredContent"]["operation_id"].clone();
    assert_eq!(
        server.notification("notifications/progress")["params"]["progressToken"],
        id
    );

    let mut server = options(&workspace).open(Era::Modern);
    let request = server.request("tools/call", call(json!({"progressToken": 77})));
    server.answer(request);
    server.tool("await", json!({}));
    let late = server.others_by_now();
    assert!(late.is_empty(), "{late:?}");
}
