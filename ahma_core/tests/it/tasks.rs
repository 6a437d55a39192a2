//! The tasks extension: offered only to clients of the modern era that declare it.

use std::fs;

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, wait_for};

use crate::{live::scanner, session::options};

/// A request of a client that declares the extension.
fn ask(server: &mut Server, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    server.call(method, params)
}

fn create(server: &mut Server, tool: &str, arguments: Value) -> Value {
    let mut answer = ask(
        server,
        "tools/call",
        json!({"name": tool, "arguments": arguments}),
    );
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"].take()
}

fn get(server: &mut Server, task: &Value) -> Value {
    let mut answer = ask(server, "tasks/get", json!({"taskId": task["taskId"]}));
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].take()
}

#[test]
fn an_asynchronous_call_becomes_a_task() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &scanner());
    let script = "echo 40 percent; until [ -e go ]; do sleep 0.02; done; echo end; exit 3";
    fs::write(workspace.scope().join("scan.sh"), script).unwrap();
    let mut server = options(&workspace).open(Era::Modern);
    let task = create(
        &mut server,
        "scan",
        json!({"script": "scan.sh", "execution_mode": "asynchronous"}),
    );
    assert_eq!(task["status"], "working");
    assert!(task["ttlMs"].as_u64().unwrap() > 600_000, "{task}");
    assert!(task["pollIntervalMs"].is_u64(), "{task}");
    let task_id = task["taskId"].as_str().unwrap();
    let operation = task["_meta"]["ahma/operationId"].as_str().unwrap().to_owned();
    assert!(task_id.len() >= 32 && !task_id.contains(&operation), "{task_id}");

    wait_for("percent in the message", || {
        let seen = get(&mut server, &task);
        assert_eq!(seen["status"], "working");
        let message = seen["statusMessage"].as_str()?.to_owned();
        assert!(message.contains(&operation), "{message}");
        message.contains("40%").then_some(())
    });
    fs::write(workspace.scope().join("go"), "").unwrap();
    let done = wait_for("the end of the task", || {
        Some(get(&mut server, &task)).filter(|seen| seen["status"] != "working")
    });
    // A command that fails has completed, with a result that says so.
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["isError"], true);
    assert_eq!(done["result"]["structuredContent"]["exit_code"], 3);
    assert_eq!(done["result"]["structuredContent"]["output"], "40 percent\nend\n");
    // No input was asked for, so an update changes nothing.
    let updated = ask(
        &mut server,
        "tasks/update",
        json!({"taskId": task_id, "inputResponses": {}}),
    );
    assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
    assert_eq!(get(&mut server, &task)["status"], "completed");
    let rest = server.tool("await", json!({}));
    assert_eq!(
        rest["structuredContent"]["reason"], "nothing_to_wait_for",
        "{rest}"
    );
}

#[test]
fn a_cancelled_task_leaves_nothing_running() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    // It goes on until it is killed, so that the answers in between can be seen.
    let command = "trap '' INT TERM; touch started; while :; do sleep 0.1; done";
    let task = create(
        &mut server,
        "sandboxed_shell",
        json!({"command": command, "execution_mode": "asynchronous"}),
    );
    wait_for("the command to run", || {
        workspace.scope().join("started").exists().then_some(())
    });
    // It prints nothing; still its message shows the time.
    wait_for("a second to pass", || {
        let message = get(&mut server, &task)["statusMessage"].take();
        message.as_str()?.contains("running for 1").then_some(())
    });
    let cancelled = ask(&mut server, "tasks/cancel", json!({"taskId": task["taskId"]}));
    assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
    wait_for("the message to change", || {
        let message = get(&mut server, &task)["statusMessage"].take();
        message.as_str()?.contains("is being stopped").then_some(())
    });
    let cancelled = wait_for("the task to be cancelled", || {
        Some(get(&mut server, &task)).filter(|seen| seen["status"] == "cancelled")
    });
    let message = cancelled["statusMessage"].as_str().unwrap();
    assert!(message.contains(" cancelled after "), "{message}");
    let status = server.tool(
        "status",
        json!({"operation_ids": [task["_meta"]["ahma/operationId"]]}),
    );
    assert_eq!(
        status["structuredContent"]["operations"][0]["status"], "cancelled",
        "{status}"
    );
}

#[test]
fn a_task_is_known_to_its_principal_alone() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let named = |principal: &str, mut params: Value| {
        params["_meta"] = json!({"ahma/principal": principal});
        params
    };
    let arguments =
        json!({"command": "until [ -e go ]; do sleep 0.02; done", "execution_mode": "asynchronous"});
    let call = json!({"name": "sandboxed_shell", "arguments": arguments});
    let created = ask(&mut server, "tools/call", named("1", call));
    let id = json!({"taskId": created["result"]["taskId"]});
    for (method, extra) in [
        ("tasks/get", json!({})),
        ("tasks/cancel", json!({})),
        ("tasks/update", json!({"inputResponses": {}})),
    ] {
        let mut params = id.clone();
        params
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let refused = ask(&mut server, method, named("2", params));
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    fs::write(workspace.scope().join("go"), "").unwrap();
    let done = wait_for("the end of the task", || {
        let mut seen = ask(&mut server, "tasks/get", named("1", id.clone()));
        Some(seen["result"].take()).filter(|seen| seen["status"] != "working")
    });
    assert_eq!(done["status"], "completed", "{done}");
}

#[test]
fn nobody_else_gets_a_task() {
    let workspace = Workspace::new();
    let call = json!({"name": "sandboxed_shell", "arguments": {"command": "echo hi"}});
    let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});

    let mut server = options(&workspace).open(Era::Modern);
    let plain = server.call("tools/call", call.clone());
    assert_eq!(
        plain["result"]["structuredContent"]["status"], "started",
        "{plain}"
    );
    let undeclared = server.call("tasks/get", json!({"taskId": "x"}));
    assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
    let unknown = ask(&mut server, "tasks/get", json!({"taskId": "op_00000000"}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // A call that is asked to wait answers with its result.
    let mut synchronous = call.clone();
    synchronous["arguments"]["execution_mode"] = "synchronous".into();
    let result = ask(&mut server, "tools/call", synchronous);
    assert_eq!(
        result["result"]["structuredContent"]["output"], "hi\n",
        "{result}"
    );

    // The older era has no tasks, whatever its client declares.
    let mut server = options(&workspace).start();
    let hello = server.initialize(declared);
    assert_eq!(hello["result"]["capabilities"].get("extensions"), None, "{hello}");
    let plain = server.call("tools/call", call);
    assert_eq!(
        plain["result"]["structuredContent"]["status"], "started",
        "{plain}"
    );
    let refused = server.call("tasks/get", json!({"taskId": "x"}));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}
