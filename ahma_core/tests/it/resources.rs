//! Operations as resources, and their output in parts.

use serde_json::json;
use test_support::{Era, Server, Workspace};

use crate::{
    calls::{shell, start, text},
    session::options,
};

#[test]
fn output_is_read_in_parts_and_searched() {
    let workspace = Workspace::new();
    let mut server = options(&workspace)
        .args(["--max-result-bytes", "2K"])
        .open(Era::Modern);
    let result = shell(
        &mut server,
        "for i in $(seq 5000); do echo line $i; done",
        "synchronous",
    );
    let report = &result["structuredContent"];
    assert_eq!(report["output_lines"], 5000);
    let left_out = &report["left_out"];
    assert!(left_out["lines"].as_u64().expect("a count") > 4000, "{left_out}");
    let id = report["operation_id"].as_str().expect("an id").to_owned();

    let page = server.tool(
        "output",
        json!({"operation_id": id, "from_line": left_out["from_line"], "max_lines": 2}),
    );
    let first = left_out["from_line"].as_u64().expect("a line");
    assert_eq!(
        page["structuredContent"]["text"],
        format!("line {first}\nline {}\n", first + 1)
    );
    assert_eq!(page["structuredContent"]["next_line"], first + 2);
    let tail = server.tool("output", json!({"operation_id": id, "tail": 2}));
    assert_eq!(tail["structuredContent"]["text"], "line 4999\nline 5000\n");
    let found = server.tool(
        "output",
        json!({"operation_id": id, "grep": "e 77$", "context": 1}),
    );
    assert_eq!(
        found["structuredContent"]["text"],
        "76-line 76\n77:line 77\n78-line 78\n"
    );
    assert_eq!(found["structuredContent"]["matches"], 1);

    for (wrong, word) in [
        (json!({"operation_id": id, "grep": "("}), "regular expression"),
        (json!({"operation_id": id, "tail": 1, "from_line": 2}), "combined"),
        (json!({"operation_id": "op_nothing"}), "op_nothing"),
        (json!({}), "operation_id"),
    ] {
        let refused = server.tool("output", wrong);
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains(word), "{}", text(&refused));
    }
}

#[test]
fn operations_are_resources_and_changes_are_told() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let id = start(
        &mut server,
        "echo resource; until [ -e gate ]; do sleep 0.02; done",
    );
    let uri = format!("ahma://operations/{id}");
    assert!(server.call("resources/subscribe", json!({"uri": uri}))["result"].is_object());
    for unknown in [
        "ahma://no",
        "ahma://operations/op_nope",
        "ahma://operations/op_nope/output",
    ] {
        let refused = server.call("resources/subscribe", json!({"uri": unknown}));
        assert_eq!(refused["error"]["code"], -32002, "{unknown}: {refused}");
    }
    let read = |server: &mut Server, uri: &str| {
        server.call("resources/read", json!({"uri": uri}))["result"]["contents"][0]["text"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert!(read(&mut server, "ahma://operations").contains(&id));
    assert!(read(&mut server, "ahma://status").contains("sandbox"));
    std::fs::write(workspace.scope().join("gate"), "").expect("writable");
    assert_eq!(
        server.notification("notifications/resources/updated")["params"]["uri"],
        uri
    );
    server.tool("await", json!({"operation_ids": [id]}));
    assert_eq!(read(&mut server, &format!("{uri}/output")), "resource\n");
    assert!(read(&mut server, &uri).contains("completed"));
    let listed = server.call("resources/list", json!({}));
    assert_eq!(listed["result"]["resources"].as_array().map(Vec::len), Some(2));
    let templates = server.call("resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"].as_array().map(Vec::len),
        Some(2)
    );
}
