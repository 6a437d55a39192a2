//! `await`: what it waits for, and what one answer holds.

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, wait_for};

use crate::{
    calls::{shell, start, text},
    session::options,
};

#[test]
fn an_asynchronous_call_answers_at_once_and_await_collects_it() {
    let workspace = Workspace::new();
    for era in Era::BOTH {
        let mut server = options(&workspace).open(era);
        let gate = workspace.scope().join("gate");
        let started = shell(
            &mut server,
            "until [ -e gate ]; do sleep 0.02; done; echo through",
            "asynchronous",
        );
        let report = &started["structuredContent"];
        assert_eq!(report["status"], "started");
        assert_eq!(report["tool"], "sandboxed_shell");
        let id = report["operation_id"].as_str().expect("an id").to_owned();
        assert!(text(&started).contains(&id));

        wait_for("the command to run", || {
            let waited = server.tool("await", json!({"operation_ids": [id], "timeout_seconds": 0}));
            assert_eq!(waited["structuredContent"]["reason"], "time_is_up");
            (waited["structuredContent"]["operations"][0]["status"] == "running").then_some(())
        });

        std::fs::write(&gate, "").expect("writable");
        let waited = server.tool("await", json!({"operation_ids": [id]}));
        assert_eq!(waited["structuredContent"]["reason"], "all_ended");
        assert_eq!(
            waited["structuredContent"]["operations"][0]["output"],
            "through\n"
        );
        assert!(text(&waited).contains("through"));
        std::fs::remove_file(&gate).expect("it is there");
    }
}

#[test]
fn await_without_ids_collects_each_result_once() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let ids = [start(&mut server, "echo one"), start(&mut server, "exit 3")];
    let waited = server.tool("await", json!({"until": "all"}));
    let operations = waited["structuredContent"]["operations"]
        .as_array()
        .expect("a list")
        .clone();
    let mut found: Vec<_> = operations
        .iter()
        .map(|row| row["operation_id"].as_str().expect("an id"))
        .collect();
    let mut expected: Vec<_> = ids.iter().map(String::as_str).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let waited = server.tool("await", json!({}));
    assert_eq!(waited["structuredContent"]["reason"], "nothing_to_wait_for");
}

#[test]
fn await_says_what_the_call_itself_would_have_said() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let refused = "echo x > /usr/ahma-probe";
    let told = shell(&mut server, refused, "synchronous");
    let told = text(&told);
    let id = start(&mut server, refused);
    let collected = server.tool("await", json!({"operation_ids": [id]}));
    let after_the_headline = |text: &str| text.split_once('\n').expect("lines").1.trim_end().to_owned();
    assert!(told.contains("hint: "), "{told}");
    assert_eq!(after_the_headline(text(&collected)), after_the_headline(told));
}

#[test]
fn await_collects_no_more_than_fits_and_the_rest_next_time() {
    const COUNT: usize = 200;
    /// As `--help` and the documentation say.
    const RESULT_BYTES: usize = 7_500;
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let mut expected: Vec<String> = (0..COUNT)
        .map(|number| start(&mut server, &format!("echo {number}; seq 1000")))
        .collect();
    let mut collected = Vec::new();
    loop {
        let waited = server.tool("await", json!({"until": "all"}));
        let report = &waited["structuredContent"];
        let ids: Vec<_> = report["operations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| row["operation_id"].as_str().expect("an id").to_owned())
            .collect();
        assert!(
            report.to_string().len() <= RESULT_BYTES + 1024,
            "{}",
            report.to_string().len()
        );
        assert!(
            text(&waited).len() <= RESULT_BYTES + 1024,
            "{}",
            text(&waited).len()
        );
        assert!(!ids.is_empty(), "{waited}");
        for row in report["operations"].as_array().expect("a list") {
            let shown = row["output"].as_str().expect("output");
            let (head, rest) = shown.split_once("[... ").unwrap_or((shown, ""));
            let tail = rest.split_once("...]\n").map_or("", |(_, tail)| tail);
            let left_out = row["left_out"]["bytes"].as_u64().unwrap_or(0);
            let kept = (head.len() + tail.len()) as u64;
            assert_eq!(
                kept + left_out,
                row["output_bytes"].as_u64().expect("a size"),
                "{row}"
            );
        }
        collected.extend(ids);
        let left_out = report["left_out"].as_u64().unwrap_or(0) as usize;
        assert_eq!(collected.len() + left_out, COUNT);
        if left_out == 0 {
            break;
        }
        assert!(text(&waited).contains(&format!("{left_out} more")), "{waited}");
    }
    collected.sort_unstable();
    expected.sort_unstable();
    assert_eq!(collected, expected);
}

#[test]
fn an_empty_list_of_operations_is_none_and_each_is_reported_once() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let ids = [start(&mut server, "sleep 600"), start(&mut server, "sleep 600")];
    let reported = |result: &Value| -> Vec<Value> {
        let rows = result["structuredContent"]["operations"].as_array();
        let rows = rows.expect("reports");
        rows.iter().map(|row| row["operation_id"].clone()).collect()
    };
    let repeated = json!([ids[1], ids[0], ids[1]]);
    for tool in ["await", "status"] {
        let mut ask = |operation_ids: Value| {
            let mut arguments = json!({ "operation_ids": operation_ids });
            if tool == "await" {
                arguments["timeout_seconds"] = json!(0);
            }
            reported(&server.tool(tool, arguments))
        };
        assert_eq!(ask(json!([])), ids, "{tool}");
        assert_eq!(ask(repeated.clone()), [&*ids[1], &*ids[0]], "{tool}");
    }
}

#[test]
fn many_unknown_operations_are_counted_and_too_many_refused() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    for tool in ["await", "status"] {
        let mut ask = |count: usize| {
            let ids: Vec<_> = (0..count).map(|number| format!("op_none{number}")).collect();
            let refused = server.tool(tool, json!({ "operation_ids": ids }));
            assert_eq!(refused["isError"], true, "{refused}");
            text(&refused).to_owned()
        };
        let unknown = ask(1_000);
        assert!(
            unknown.contains("no operation is called op_none9;") && !unknown.contains("op_none10"),
            "{unknown}"
        );
        assert!(
            unknown.contains("`operation_ids` has 990 more that are not known"),
            "{unknown}"
        );
        let too_many = ask(1_001);
        assert!(
            too_many.contains("`operation_ids` must be an array of at most 1000 strings"),
            "{too_many}"
        );
    }
}

#[test]
fn await_any_returns_with_the_first() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let slow = start(&mut server, "sleep 600");
    let quick = start(&mut server, "until [ -e go ]; do sleep 0.02; done");
    let status = |server: &mut Server| {
        let rows = server.tool("status", json!({"operation_ids": [slow]}));
        rows["structuredContent"]["operations"][0]["status"] == "running"
    };
    wait_for("the slow one to run", || status(&mut server).then_some(()));
    std::fs::write(workspace.scope().join("go"), "").expect("writable");
    let waited = server.tool("await", json!({"operation_ids": [slow, quick], "until": "any"}));
    assert_eq!(waited["structuredContent"]["reason"], "one_ended");
    assert_eq!(
        waited["structuredContent"]["operations"][0]["operation_id"],
        quick
    );
    assert_eq!(waited["structuredContent"]["operations"][1]["status"], "running");
}
