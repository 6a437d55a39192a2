//! `status`, the queue, and what both say about operations.

use serde_json::json;
use test_support::{Era, Workspace, wait_for};

use crate::{
    calls::{shell, start, text},
    session::{echo, options},
};

#[test]
fn rows_say_what_runs_and_what_it_printed_last() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let command = "echo compiling; sleep 600";
    let id = start(&mut server, command);
    let status = wait_for("the line", || {
        let status = server.tool("status", json!({"operation_ids": [id]}));
        let row = &status["structuredContent"]["operations"][0];
        (row["newest_line"] == "compiling").then_some(status)
    });
    let row = &status["structuredContent"]["operations"][0];
    assert_eq!(row["command"], command);
    for words in [
        &format!("{id} (sandboxed_shell: {command}) running"),
        "newest line: compiling",
    ] {
        assert!(text(&status).contains(words), "{}", text(&status));
    }
    let cancelled = server.tool("cancel", json!({"operation_id": id}));
    assert_eq!(cancelled["structuredContent"]["command"], command);
    assert!(
        text(&cancelled).starts_with("cancelled after "),
        "{}",
        text(&cancelled)
    );
}

#[test]
fn a_call_that_waits_for_its_turn_says_so() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .args(["--max-operations", "1", "--sync-wait", "1s"])
        .open(Era::Modern);
    let running = start(&mut server, "sleep 600");
    for position in [1, 2] {
        let result = shell(&mut server, "echo turn", "asynchronous");
        let report = &result["structuredContent"];
        assert_eq!(report["status"], "queued", "{result}");
        assert_eq!(report["queue_position"], position);
        for words in ["queued", "--max-operations", "await"] {
            assert!(text(&result).contains(words), "{}", text(&result));
        }
    }
    let result = shell(&mut server, "echo turn", "synchronous");
    assert_eq!(result["structuredContent"]["status"], "queued", "{result}");
    assert_eq!(result["structuredContent"]["queue_position"], 3);
    for words in ["number 3 in the queue", "--max-operations", "await"] {
        assert!(text(&result).contains(words), "{}", text(&result));
    }
    server.tool("cancel", json!({"operation_id": running}));
    let waited = server.tool("await", json!({"until": "all"}));
    assert_eq!(waited["structuredContent"]["reason"], "all_ended", "{waited}");
}

#[test]
fn status_of_chosen_operations_is_short() {
    let workspace = Workspace::new();
    let mut missing = echo("absent");
    missing["availability_check"] = json!("no-such-program-at-all --version");
    workspace.write_tool("absent.json", &missing);
    let mut server = options(&workspace)
        .args(["--max-result-bytes", "2K"])
        .open(Era::Modern);
    wait_for("the probe", || {
        text(&server.tool("status", json!({"tools": true})))
            .contains("absent is not available")
            .then_some(())
    });
    let ids: Vec<_> = (0..30)
        .map(|number| start(&mut server, &format!("echo {number}")))
        .collect();
    let status = server.tool("status", json!({"operation_ids": ids}));
    assert!(!text(&status).contains("not available"), "{}", text(&status));
    let report = &status["structuredContent"];
    assert!(report.get("tools").is_none(), "{report}");
    let shown = report["operations"].as_array().expect("rows").len();
    let left_out = report["operations_left_out"].as_u64().expect("some");
    assert_eq!(shown as u64 + left_out, 30);
    assert!(
        shown > 0 && report["operations"].to_string().len() < 3 << 10,
        "{report}"
    );
    assert!(
        text(&status).contains(&format!("{left_out} more would not fit")),
        "{}",
        text(&status)
    );
}
