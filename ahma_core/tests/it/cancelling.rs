//! Ending operations and requests before their time.

use serde_json::json;
use test_support::{Era, Server, Workspace, wait_for};

use crate::{
    calls::{start, text},
    session::options,
};

#[test]
fn cancel_answers_when_the_processes_are_gone() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let id = start(
            &mut server,
            "echo partial; touch began; trap '' TERM; sleep 600 & sleep 600",
        );
        wait_for("the command to begin", || {
            workspace.scope().join("began").exists().then_some(())
        });
        let result = server.tool("cancel", json!({"operation_id": id, "reason": "changed my mind"}));
        assert_eq!(result["structuredContent"]["status"], "cancelled");
        assert_eq!(result["structuredContent"]["output"], "partial\n");
        assert!(text(&result).contains("changed my mind"));
        assert_ne!(result["isError"], true);
        let again = server.tool("cancel", json!({"operation_id": id}));
        assert_eq!(again["structuredContent"]["status"], "cancelled");
        std::fs::remove_file(workspace.scope().join("began")).expect("it is there");
    }
}

/// A cancelled request has no answer, so no client would know the operation.
#[test]
fn a_call_that_is_cancelled_at_once_starts_nothing() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let call = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {
        "name": "sandboxed_shell", "arguments": {"command": "sleep 600", "execution_mode": "asynchronous"}}});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}});
    server.send_bytes(format!("{call}\n{cancelled}\n").as_bytes());
    let status = server.tool("status", json!({}));
    assert_eq!(status["structuredContent"]["operations"], json!([]), "{status}");
}

#[test]
fn cancelling_a_request_stops_its_own_synchronous_command_and_nothing_else() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let other = start(&mut server, "sleep 600");
        let call = json!({
            "name": "sandboxed_shell",
            "arguments": {"command": "touch began; sleep 600", "execution_mode": "synchronous"},
        });
        let request = server.request("tools/call", call);
        wait_for("the command to begin", || {
            workspace.scope().join("began").exists().then_some(())
        });
        let waiting = server.request(
            "tools/call",
            json!({"name": "await", "arguments": {"operation_ids": [other]}}),
        );
        server.notify("notifications/cancelled", json!({"requestId": request}));
        server.notify("notifications/cancelled", json!({"requestId": waiting}));
        let statuses = wait_for_statuses(&mut server, |statuses| statuses.contains(&"cancelled".to_owned()));
        assert_eq!(
            statuses.iter().filter(|status| *status == "running").count(),
            1,
            "{statuses:?}"
        );
        let answered = server.others_by_now();
        let about = |id: i64| answered.iter().any(|message| message["id"] == id);
        assert!(
            !about(request) && !about(waiting),
            "cancelled requests are not answered: {answered:?}"
        );
        std::fs::remove_file(workspace.scope().join("began")).expect("it is there");
    }
}

#[test]
fn cancelled_searches_block_nothing() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let printed = server.tool(
            "sandboxed_shell",
            json!({"command": "yes 'many words of a line that is searched slowly' | head -n 1000000", "execution_mode": "synchronous"}),
        );
        let id = &printed["structuredContent"]["operation_id"];
        let slow =
            json!({"name": "output", "arguments": {"operation_id": id, "grep": r"(\w+\W*){1,60}zzzz$"}});
        let searches = [(); 2].map(|()| server.request("tools/call", slow.clone()));
        let lines = server.tool(
            "output",
            json!({"operation_id": id, "from_line": 5, "max_lines": 1}),
        );
        assert_eq!(lines["structuredContent"]["first_line"], 5, "{lines}");
        for search in searches {
            server.notify("notifications/cancelled", json!({"requestId": search}));
        }
        let found = server.tool("output", json!({"operation_id": id, "grep": "line"}));
        assert_eq!(found["structuredContent"]["matches"], 1_000_000, "{found}");
    }
}

fn wait_for_statuses(server: &mut Server, done: impl Fn(&[String]) -> bool) -> Vec<String> {
    wait_for("the operations to stand so", || {
        let status = server.tool("status", json!({}));
        let rows = status["structuredContent"]["operations"]
            .as_array()
            .expect("rows")
            .clone();
        let statuses: Vec<_> = rows
            .iter()
            .map(|row| row["status"].as_str().expect("a status").to_owned())
            .collect();
        done(&statuses).then_some(statuses)
    })
}
