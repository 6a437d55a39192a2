//! Any front end starts, follows, stops and reads any operation of its principal.

use serde_json::json;
use test_support::{Era, Roots};

use super::pool::{Cluster, accepted, ended, printed, start, whole_output};

#[test]
fn what_starts_at_one_front_end_is_followed_at_another_and_cancelled_at_a_third() {
    let Some(cluster) = Cluster::start() else { return };
    let _workers = [cluster.worker(), cluster.worker()];
    let fronts = [
        cluster.http_front_end(),
        cluster.http_front_end(),
        cluster.http_front_end(),
    ];
    for era in Era::BOTH {
        let mut clients: Vec<_> = fronts
            .iter()
            .map(|front| match era {
                Era::Legacy => front.session(Roots::None),
                Era::Modern => front.sessionless(),
            })
            .collect();
        let [one, two, three] = clients.as_mut_slice() else {
            panic!()
        };
        let id = start(one, "echo begun; sleep 1000");
        printed(two, &id, "begun");
        let stopped = three.tool("cancel", json!({"operation_id": id, "reason": "enough"}));
        assert_eq!(stopped["structuredContent"]["status"], "cancelled", "{stopped}");
        for client in [one, two] {
            let report = ended(client, &id);
            let end = (&report["status"], &report["reason"]);
            assert_eq!(end, (&json!("cancelled"), &json!("enough")), "{report}");
            assert_eq!(whole_output(client, &id), "begun\n");
        }
    }
}

#[test]
fn a_late_reader_gets_the_whole_output_and_the_same_result() {
    let Some(cluster) = Cluster::start() else { return };
    let _worker = cluster.worker();
    let mut early = cluster.front_end(Era::Legacy);
    let id = start(&mut early, "seq 60000; exit 3");
    let seen = ended(&mut early, &id);
    assert_eq!(
        (&seen["status"], &seen["exit_code"]),
        (&json!("failed"), &json!(3)),
        "{seen}"
    );
    let expected: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    assert!(whole_output(&mut early, &id) == expected);

    let mut late = cluster.front_end(Era::Modern);
    assert_eq!(ended(&mut late, &id), seen);
    assert!(whole_output(&mut late, &id) == expected);
    let uri = format!("ahma://operations/{id}");
    let resource = late.call("resources/read", json!({"uri": uri}));
    let text = resource["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"failed\""), "{text}");
}

#[test]
fn a_command_ends_the_same_way_as_on_one_machine() {
    let Some(cluster) = Cluster::start() else { return };
    let _worker = cluster.worker();
    let mut remote = cluster.front_end(Era::Legacy);
    let mut local = crate::session::options(&cluster.workspace).open(Era::Legacy);
    std::fs::write(cluster.workspace.scope().join("made"), "before\n").unwrap();
    for (tool, arguments) in [
        ("sandboxed_shell", json!({"command": "echo out; echo err >&2"})),
        ("sandboxed_shell", json!({"command": "echo no; exit 7"})),
        ("sandboxed_shell", json!({"command": "kill -9 $$"})),
        ("sandboxed_shell", json!({"command": "seq 5000"})),
        (
            "sandboxed_shell",
            json!({"command": "sleep 60", "timeout_seconds": 1}),
        ),
        (
            "sandboxed_shell",
            json!({"command": "pwd", "working_directory": "missing"}),
        ),
        (
            "sandboxed_shell",
            json!({"command": "pwd", "working_directory": "/etc"}),
        ),
        ("sandboxed_shell", json!({"command": 5})),
        ("sandboxed_shell", json!({"comand": "pwd"})),
        ("file_write", json!({"path": "made", "content": "text\n"})),
        ("file_read", json!({"path": "made"})),
        ("status", json!({"operation_ids": ["op_unknown"]})),
    ] {
        let mut arguments = arguments;
        if tool == "sandboxed_shell" {
            arguments["execution_mode"] = json!("synchronous");
        }
        let mut answers = [&mut remote, &mut local].map(|client| client.tool(tool, arguments.clone()));
        for answer in &mut answers {
            let id = answer["structuredContent"]["operation_id"]
                .as_str()
                .unwrap_or("none")
                .to_owned();
            *answer = serde_json::from_str(&answer.to_string().replace(&id, "ID")).unwrap();
            for changing in ["duration_seconds", "cpu_seconds", "peak_memory_bytes"] {
                if let Some(content) = answer["structuredContent"].as_object_mut() {
                    content.remove(changing);
                }
            }
        }
        let [remote, local] = answers;
        assert_eq!(
            remote["isError"], local["isError"],
            "{arguments}: {remote}\n{local}"
        );
        if arguments["working_directory"] == "missing" {
            // Only the worker can look at the directory, so this is a failed operation and not a refused call.
            assert!(remote.to_string().contains("does not exist"), "{remote}");
            continue;
        }
        assert_eq!(
            remote["structuredContent"], local["structuredContent"],
            "{arguments}: {remote}\n{local}"
        );
    }
}

#[test]
fn another_front_end_lists_and_collects_what_is_open() {
    let Some(cluster) = Cluster::start() else { return };
    let _worker = cluster.worker();
    let (mut one, mut two) = (cluster.front_end(Era::Legacy), cluster.front_end(Era::Modern));
    let done = start(&mut one, "echo first");
    let open = start(&mut one, "echo second; until [ -e go ]; do sleep 0.05; done");
    printed(&mut two, &open, "second");
    let listed = two.tool("status", json!({}));
    let text = listed["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&done) && text.contains(&open), "{text}");
    // The first one has not been collected.
    let collected = two.tool("await", json!({"timeout_seconds": 30}));
    assert!(
        collected["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("first"),
        "{collected}"
    );
    std::fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    let report = ended(&mut one, &open);
    assert_eq!(report["status"], "completed", "{report}");
}

#[test]
fn a_task_is_known_to_every_front_end() {
    let Some(cluster) = Cluster::start() else { return };
    let _worker = cluster.worker();
    let (mut one, mut two) = (cluster.front_end(Era::Modern), cluster.front_end(Era::Modern));
    let declared = json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
    let arguments = json!({"command": "echo in a task", "execution_mode": "asynchronous"});
    let created = one.call(
        "tools/call",
        json!({"name": "sandboxed_shell", "arguments": arguments, "_meta": declared}),
    );
    let task = created["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{created}"))
        .to_owned();
    test_support::wait_for("the end of the task", || {
        let seen = two.call("tasks/get", json!({"taskId": task, "_meta": declared}));
        assert!(seen["result"].is_object(), "{seen}");
        (seen["result"]["status"] == "completed").then(|| {
            assert!(seen.to_string().contains("in a task"), "{seen}");
        })
    });
}

#[test]
fn findings_and_progress_come_from_the_worker() {
    let Some(cluster) = Cluster::start() else { return };
    crate::live::scanning(&cluster.workspace);
    let _worker = cluster.worker();
    let mut local = crate::session::options(&cluster.workspace).open(Era::Legacy);
    let mut one = cluster.front_end(Era::Legacy);
    let mut two = cluster.front_end(Era::Legacy);
    let begun = |client: &mut test_support::Client| {
        let arguments = json!({"script": "scan.sh", "execution_mode": "asynchronous"});
        accepted(|| client.tool("scan", arguments.clone()))
    };
    let (there, here) = (begun(&mut one), begun(&mut local));
    printed(&mut two, &there, "40 percent");
    let percent = test_support::wait_for("progress", || {
        let row = two.tool("status", json!({"operation_ids": [there]}));
        row["structuredContent"]["operations"][0]["percent"].as_f64()
    });
    assert!((percent - 40.0).abs() < 0.01, "{percent}");
    std::fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    let (there, here) = (ended(&mut two, &there), ended(&mut local, &here));
    for field in [
        "status",
        "exit_code",
        "finding_counts",
        "findings",
        "output_lines",
    ] {
        assert_eq!(there[field], here[field], "{field}: {there}\n{here}");
    }
}
