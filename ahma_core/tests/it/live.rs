//! Messages to a client while a command runs: log messages, findings, updates of resources. Both eras, raw lines.
//!
//! The commands here wait for a file before they end, so whatever comes before that file is made came live.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use test_support::{Era, Server, Workspace, wait_for};

use crate::session::options;

const MESSAGE: &str = "notifications/message";
const PROGRESS: &str = "notifications/progress";
const UPDATED: &str = "notifications/resources/updated";

/// A tool with a format of its own, known to the server by this file only.
pub(crate) fn scanner() -> Value {
    json!({
        "name": "scan", "description": "Scans.", "command": "sh", "synchronous": true,
        "positional_args": [{ "name": "script", "type": "string", "format": "path", "required": true }],
        "stream": { "rules": [
            { "emit": "progress", "match": "^(?P<done>\\d+) percent$", "percent": "{done}" },
            { "emit": "finding", "match": "^hole (?P<severity>\\w+) (?P<cve>CVE-\\S+) at (?P<where>\\S+): (?P<title>.+); do (?P<fix>.+)$",
              "finding": { "severity": "{severity}", "id": "{cve}", "cve": "{cve}", "title": "{title}", "location": "{where}",
                           "description": "{title} at {where}", "remediation": "{fix}" } },
        ] },
    })
}

const SCRIPT: &str = "echo 40 percent
echo 'hole high CVE-2026-1 at port/80: old server; do update'
echo 'hole low CVE-2026-2 at port/81: chatty banner; do hide'
until [ -e go ]; do sleep 0.02; done
echo done
";

pub(crate) fn scanning(workspace: &Workspace) {
    workspace.write_tool("scan.json", &scanner());
    fs::write(workspace.scope().join("scan.sh"), SCRIPT).unwrap();
}

fn let_go(workspace: &Workspace) {
    fs::write(workspace.scope().join("go"), "").unwrap();
}

/// Calls `scan` and asks for log messages of that level, in the way of the era.
fn scan(server: &mut Server, era: Era, level: &str, extra: Value) -> i64 {
    let mut params = json!({"name": "scan", "arguments": {"script": "scan.sh"}});
    for (name, value) in extra.as_object().into_iter().flatten() {
        params["arguments"][name] = value.clone();
    }
    match era {
        Era::Legacy => {
            let set = server.call("logging/setLevel", json!({"level": level}));
            assert_eq!(set["result"], json!({}), "{set}");
        }
        Era::Modern => params["_meta"]["io.modelcontextprotocol/logLevel"] = level.into(),
    }
    server.request("tools/call", params)
}

#[test]
fn output_and_findings_come_as_log_messages_while_the_command_runs() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        scanning(&workspace);
        let mut server = options(&workspace).open(era);
        let id = scan(&mut server, era, "info", json!({}));

        let mut output = String::new();
        let mut findings = Vec::new();
        while findings.len() < 2 || !output.contains("banner") {
            let message = server.notification(MESSAGE);
            let params = &message["params"];
            assert_eq!(params["logger"], "scan");
            assert_eq!(params["_meta"]["ahma/relatedRequestId"], id);
            output.push_str(params["data"]["output"].as_str().unwrap_or_default());
            if params["data"]["finding"].is_object() {
                findings.push((params["level"].clone(), params["data"]["finding"].clone()));
            }
        }
        assert!(!output.contains("done"));
        assert_eq!(findings[0].0, "error");
        assert_eq!(
            findings[0].1,
            json!({"severity": "high", "id": "CVE-2026-1", "cve": "CVE-2026-1", "title": "old server",
                   "location": "port/80", "description": "old server at port/80", "remediation": "update"})
        );
        assert_eq!(findings[1].0, "notice");

        let_go(&workspace);
        let answer = server.answer(id);
        assert_eq!(
            answer["result"]["structuredContent"]["findings"][1]["id"],
            "CVE-2026-2"
        );
        // All messages of a request come before its answer.
        let rest: String = server
            .others(Duration::ZERO)
            .iter()
            .filter_map(|message| message["params"]["data"]["output"].as_str())
            .collect();
        output.push_str(&rest);
        assert_eq!(answer["result"]["structuredContent"]["output"], output.as_str());
    }
}

#[test]
fn only_what_is_loud_enough_is_told() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        scanning(&workspace);
        let_go(&workspace);
        let mut server = options(&workspace).open(era);
        let id = scan(&mut server, era, "warning", json!({}));
        server.answer(id);
        let told: Vec<Value> = server
            .others(Duration::ZERO)
            .into_iter()
            .filter(|message| message["method"] == MESSAGE)
            .map(|message| message["params"]["data"]["finding"]["id"].clone())
            .collect();
        assert_eq!(told, [json!("CVE-2026-1")]);

        // A client that never asked hears nothing.
        let mut server = options(&workspace).open(era);
        server.tool("scan", json!({"script": "scan.sh"}));
        let others = server.others(Duration::ZERO);
        assert!(
            others.iter().all(|message| message["method"] != MESSAGE),
            "{others:?}"
        );
    }
}

#[test]
fn an_asynchronous_operation_is_followed_after_its_answer_in_the_legacy_era_only() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        scanning(&workspace);
        let mut server = options(&workspace).open(era);
        let id = scan(
            &mut server,
            era,
            "notice",
            json!({"execution_mode": "asynchronous"}),
        );
        let started = server.answer(id);
        let operation = started["result"]["structuredContent"]["operation_id"].clone();
        match era {
            Era::Legacy => {
                let message = server.notification(MESSAGE);
                assert_eq!(message["params"]["data"]["operation_id"], operation);
                assert_eq!(message["params"]["data"]["finding"]["id"], "CVE-2026-1");
                let_go(&workspace);
                server.tool("await", json!({}));
            }
            Era::Modern => {
                // Findings made while no call waits are in the result; lines printed while one waits are reported.
                let waiting = server.request(
                    "tools/call",
                    json!({"name": "await", "arguments": {"operation_ids": [operation]},
                           "_meta": {"io.modelcontextprotocol/logLevel": "info"}}),
                );
                let_go(&workspace);
                let done = server.answer(waiting);
                let result = &done["result"]["structuredContent"]["operations"][0];
                assert_eq!(result["findings"][0]["id"], "CVE-2026-1");
                let told = server.others(Duration::ZERO);
                let told: Vec<&Value> = told
                    .iter()
                    .filter(|message| message["method"] == MESSAGE)
                    .collect();
                assert!(
                    told.iter()
                        .all(|message| message["params"]["_meta"]["ahma/relatedRequestId"] == waiting),
                    "{told:?}"
                );
            }
        }
    }
}

#[test]
fn a_level_set_later_reaches_operations_that_run_already() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    let command = "echo early; until [ -e go ]; do sleep 0.02; done; echo late";
    server.tool(
        "sandboxed_shell",
        json!({"command": command, "execution_mode": "asynchronous"}),
    );
    server.call("logging/setLevel", json!({"level": "debug"}));
    let_go(&workspace);
    let late = server.expect("the end of the output", |message| {
        message["params"]["data"]["output"]
            .as_str()
            .is_some_and(|output| output.contains("late"))
    });
    assert_eq!(late["params"]["level"], "info");
    let wrong = server.call("logging/setLevel", json!({"level": "very loud"}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

#[test]
fn a_flood_is_told_in_part_and_says_so() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Legacy);
    server.call("logging/setLevel", json!({"level": "info"}));
    let result = server.tool(
        "sandboxed_shell",
        json!({"command": "seq 1 300000", "execution_mode": "synchronous"}),
    );
    let told = server.others(Duration::ZERO);
    let mut bytes = 0;
    for message in told.iter().filter(|message| message["method"] == MESSAGE) {
        let data = &message["params"]["data"];
        bytes += data["output"].as_str().unwrap().len() as u64 + data["skipped_bytes"].as_u64().unwrap_or(0);
    }
    assert_eq!(result["structuredContent"]["output_bytes"], bytes);
    let newest = told.iter().rfind(|message| message["method"] == MESSAGE).unwrap();
    assert!(
        newest["params"]["data"]["output"]
            .as_str()
            .unwrap()
            .ends_with("300000\n")
    );
}

#[test]
fn findings_ride_on_progress_at_once() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        scanning(&workspace);
        let mut server = options(&workspace).open(era);
        let id = server.request(
            "tools/call",
            json!({"name": "scan", "arguments": {"script": "scan.sh"}, "_meta": {"progressToken": "t"}}),
        );
        let mut findings = Vec::new();
        while findings.len() < 2 {
            let progress = server.notification(PROGRESS);
            let new = progress["params"]["_meta"]["ahma/findings"].as_array().cloned();
            findings.extend(new.unwrap_or_default());
        }
        assert_eq!(findings[0]["severity"], "high");
        assert_eq!(findings[1]["id"], "CVE-2026-2");
        assert!(findings[0]["operation_id"].as_str().unwrap().starts_with("op_"));
        let_go(&workspace);
        server.answer(id);
    }
}

#[test]
fn a_burst_of_findings_just_before_the_end_is_told_whole() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &scanner());
    let lines: String = (0..180)
        .map(|number| {
            format!(
                "hole low CVE-1-{number} at x: {}; do nothing\n",
                "long ".repeat(40)
            )
        })
        .collect();
    fs::write(workspace.scope().join("lines"), lines).unwrap();
    fs::write(workspace.scope().join("burst.sh"), "cat lines").unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    let id = server.request(
        "tools/call",
        json!({"name": "scan", "arguments": {"script": "burst.sh"}, "_meta": {"progressToken": "t"}}),
    );
    server.answer(id);
    let told: Vec<Value> = server
        .others(Duration::ZERO)
        .iter()
        .filter_map(|message| message["params"]["_meta"]["ahma/findings"].as_array().cloned())
        .inspect(|findings| {
            let bytes = json!(findings).to_string().len();
            assert!(bytes < 16 << 10, "{bytes} bytes in one notification");
        })
        .flatten()
        .map(|finding| finding["id"].clone())
        .collect();
    let expected: Vec<Value> = (0..180).map(|number| format!("CVE-1-{number}").into()).collect();
    assert_eq!(told, expected);
}

#[test]
fn whoever_waits_is_told_at_once_how_things_stand() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        scanning(&workspace);
        let mut server = options(&workspace).open(era);
        let arguments = json!({"script": "scan.sh", "execution_mode": "asynchronous"});
        server.tool("scan", arguments);
        wait_for("the findings", || {
            let status = server.tool("status", json!({}));
            let row = &status["structuredContent"]["operations"][0];
            (row["finding_counts"]["low"] == 1).then_some(())
        });
        let id = server.request(
            "tools/call",
            json!({"name": "await", "arguments": {}, "_meta": {"progressToken": "t"}}),
        );
        let told = server.notification(PROGRESS);
        let message = told["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("running for") && message.contains("40%"),
            "{told}"
        );
        let findings = &told["params"]["_meta"]["ahma/findings"];
        assert_eq!(
            (&findings[0]["severity"], &findings[1]["severity"]),
            (&json!("high"), &json!("low")),
            "{told}"
        );
        let_go(&workspace);
        server.answer(id);
    }
}

#[test]
fn subscribers_hear_of_a_running_operation() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        let mut server = options(&workspace).open(era);
        let command = "for i in 1 2 3; do until [ -e go$i ]; do sleep 0.02; done; echo $i; done";
        let started = server.tool(
            "sandboxed_shell",
            json!({"command": command, "execution_mode": "asynchronous"}),
        );
        let id = started["structuredContent"]["operation_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let uri = format!("ahma://operations/{id}/output");
        match era {
            Era::Legacy => {
                server.call("resources/subscribe", json!({"uri": uri}));
            }
            Era::Modern => {
                server.request(
                    "subscriptions/listen",
                    json!({"notifications": {"resourceSubscriptions": [uri]}}),
                );
                server.notification("notifications/subscriptions/acknowledged");
            }
        }
        for step in 1..=3 {
            fs::write(workspace.scope().join(format!("go{step}")), "").unwrap();
            let shown = loop {
                let update = server.notification(UPDATED);
                assert_eq!(update["params"]["uri"], uri.as_str());
                let read = server.call("resources/read", json!({"uri": uri}));
                let text = read["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
                if text.lines().count() >= step {
                    break text;
                }
            };
            assert!(shown.ends_with(&format!("{step}\n")), "{shown}");
        }
    }
}

#[test]
fn a_subscription_hears_of_its_own_clients_operations_only() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let named = |client: &str, mut params: Value| {
        params["_meta"] = json!({"ahma/client": client});
        params
    };
    // The operation of each client is watched by the second.
    let uris = ["1", "2"].map(|client| {
        let command = format!("until [ -e go{client} ]; do sleep 0.02; done");
        let arguments = json!({"command": command, "execution_mode": "asynchronous"});
        let call = json!({"name": "sandboxed_shell", "arguments": arguments});
        let started = server.call("tools/call", named(client, call));
        let id = &started["result"]["structuredContent"]["operation_id"];
        let uri = format!("ahma://operations/{}", id.as_str().unwrap());
        let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
        server.request("subscriptions/listen", named("2", wanted));
        server.notification("notifications/subscriptions/acknowledged");
        uri
    });
    fs::write(workspace.scope().join("go1"), "").unwrap();
    server.call(
        "tools/call",
        named("1", json!({"name": "await", "arguments": {}})),
    );
    fs::write(workspace.scope().join("go2"), "").unwrap();
    // Changes are told in their order: what is told of the first comes before this.
    let told = server.notification(UPDATED);
    assert_eq!(told["params"]["uri"], uris[1].as_str(), "{told}");
}

#[test]
fn the_worst_finding_is_told_however_many_came_before_it() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &scanner());
    let script = "i=0; while [ $i -lt 1200 ]; do i=$((i+1)); echo \"hole info CVE-1-$i at x: $i; do read\"; done\n\
                  echo 'hole critical CVE-2-1 at y: the last; do panic'\n";
    fs::write(workspace.scope().join("late.sh"), script).unwrap();
    let mut server = options(&workspace).open(Era::Modern);
    let result = server.tool("scan", json!({"script": "late.sh"}));
    let report = &result["structuredContent"];
    assert_eq!(report["findings"][0]["severity"], "critical", "{report}");
    assert_eq!(report["findings_only_counted"]["info"], 201);
    let shown = report["findings"].as_array().unwrap().len() as u64;
    assert_eq!(report["findings_left_out"], 1000 - shown);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("\nfindings: 1 critical, 1200 info (only counted: 201 info)\n- critical CVE-2-1: ")
            && text.contains(r#"more: output {"#)
            && text.contains(r#""what": "findings""#),
        "{text}"
    );
}

#[test]
fn findings_are_read_in_pages_and_exported() {
    let workspace = Workspace::new();
    workspace.write_tool("scan.json", &scanner());
    let script: String = (0..250)
        .map(|number| {
            format!("echo 'hole medium CVE-2026-{number} at <{number}>: too \"old\" & slow; do update'\n")
        })
        .collect();
    fs::write(workspace.scope().join("many.sh"), script).unwrap();
    let mut server = options(&workspace).open(Era::Modern);
    let result = server.tool("scan", json!({"script": "many.sh"}));
    let report = &result["structuredContent"];
    assert_eq!(report["finding_counts"]["medium"], 250);
    assert!(report["findings"].as_array().unwrap().len() < 250);
    let id = report["operation_id"].clone();

    let mut seen = Vec::new();
    let mut from = json!(0);
    while !from.is_null() {
        let page = server.tool(
            "output",
            json!({"operation_id": id, "what": "findings", "from_finding": from, "max_findings": 90}),
        );
        let page = &page["structuredContent"];
        assert_eq!(
            (&page["total_findings"], &page["kept_findings"]),
            (&json!(250), &json!(250))
        );
        seen.extend(
            page["findings"]
                .as_array()
                .unwrap()
                .iter()
                .map(|finding| finding["id"].clone()),
        );
        from = page["next_finding"].clone();
    }
    let expected: Vec<Value> = (0..250)
        .map(|number| format!("CVE-2026-{number}").into())
        .collect();
    assert_eq!(seen, expected);

    // A document that is longer than an answer must be asked for as such; half of one would be of no use.
    for format in ["sarif", "junit"] {
        let mut arguments = json!({"operation_id": id, "what": "findings", "format": format});
        let refused = server.tool("output", arguments.clone());
        assert_eq!(refused["isError"], true, "{refused}");
        let told = refused["content"][0]["text"].as_str().unwrap();
        assert!(
            told.contains("whole: true") && told.contains("--max-result-bytes"),
            "{told}"
        );
        arguments["max_findings"] = json!(3);
        let few = server.tool("output", arguments);
        assert_ne!(few["isError"], true, "{few}");
    }
    let mut export = |format: &str| {
        let arguments = json!({"operation_id": id, "what": "findings", "format": format, "whole": true});
        let result = server.tool("output", arguments);
        assert_eq!(result["structuredContent"]["text"], result["content"][0]["text"]);
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let sarif: Value = serde_json::from_str(&export("sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 250);
    let junit = export("junit");
    assert!(
        junit.contains("tests=\"250\"") && junit.contains("too &quot;old&quot; &amp; slow"),
        "{junit}"
    );

    for defaults in [
        json!({"what": "findings", "max_lines": 1000, "context": 0, "from_line": 1}),
        json!({"what": "output", "format": "json", "from_finding": 0, "max_findings": 100, "whole": false}),
    ] {
        let mut arguments = defaults;
        arguments["operation_id"] = id.clone();
        let result = server.tool("output", arguments);
        assert_ne!(result["isError"], true, "{result}");
    }
    for (arguments, problem) in [
        (json!({"what": "findings", "tail": 3}), "tail"),
        (json!({"format": "sarif"}), "format"),
        (json!({"what": "findings", "format": "yaml"}), "format"),
        (json!({"what": "everything"}), "what"),
    ] {
        let mut arguments = arguments;
        arguments["operation_id"] = id.clone();
        let refused = server.tool("output", arguments);
        assert_eq!(refused["isError"], true);
        assert!(
            refused["content"][0]["text"].as_str().unwrap().contains(problem),
            "{refused}"
        );
    }
}

#[test]
fn a_redrawn_line_is_shown_once_and_kept_whole() {
    let workspace = Workspace::new();
    let mut server = options(&workspace).open(Era::Modern);
    let command = r"printf '10%%\r50%%\r\033[2K100%%\n\033[1mbold\033[0m\n'";
    let result = server.tool(
        "sandboxed_shell",
        json!({"command": command, "execution_mode": "synchronous"}),
    );
    assert_eq!(result["structuredContent"]["output"], "100%\nbold\n");
    let id = &result["structuredContent"]["operation_id"];
    let shown = server.tool("output", json!({"operation_id": id}));
    assert_eq!(shown["structuredContent"]["text"], "100%\nbold\n");
    let kept = server.tool("output", json!({"operation_id": id, "raw": true}));
    assert_eq!(
        kept["structuredContent"]["text"],
        "10%\r50%\r\u{1b}[2K100%\n\u{1b}[1mbold\u{1b}[0m\n"
    );
}

/// The kernel hangs up on those who still run when the other end of their terminal is closed.
/// A tool that runs a script on a pseudo-terminal.
fn on_a_terminal(workspace: &Workspace) {
    let tool = json!({
        "name": "quiet", "description": "Goes quiet.", "command": "sh", "synchronous": true,
        "positional_args": [{ "name": "script", "type": "string", "format": "path", "required": true }],
        "stream": { "pty": true, "rules": [{ "emit": "progress", "match": "^(?P<percent>\\d+)%$", "percent": "{percent}" }] },
    });
    workspace.write_tool("quiet.json", &tool);
}

#[test]
fn a_terminal_has_a_size() {
    let workspace = Workspace::new();
    on_a_terminal(&workspace);
    fs::write(workspace.scope().join("size.sh"), "stty size < /dev/tty\n").unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    let result = server.tool("quiet", json!({"script": "size.sh"}));
    assert_eq!(
        result["structuredContent"]["output"].as_str().map(str::trim),
        Some("40 120"),
        "{result}"
    );
}

#[test]
fn a_command_may_let_go_of_its_terminal_before_it_ends() {
    let workspace = Workspace::new();
    on_a_terminal(&workspace);
    let script = "echo early\nexec </dev/null >/dev/null 2>&1\nsleep 1\n(echo late > /dev/tty) || true\n";
    fs::write(workspace.scope().join("quiet.sh"), script).unwrap();
    let mut server = options(&workspace).open(Era::Legacy);
    let result = server.tool("quiet", json!({"script": "quiet.sh"}));
    let report = &result["structuredContent"];
    assert_eq!(report["status"], "completed", "{report}");
    let output = report["output"].as_str().unwrap();
    assert!(output.starts_with("early"), "{report}");
}

/// Redraws a bar on stderr that never ends its line, and waits for a file after every finding.
const BAR_SCRIPT: &str = r#"printf '\r\033[2K 10 percent' >&2
for n in 1 2 3; do
  echo "hole high CVE-2026-$n at port/$n: old server; do update"
  printf '\r%d0 percent' "$((n + 1))" >&2
  until [ -e "go$n" ]; do sleep 0.02; done
done
"#;

#[test]
fn findings_come_whole_and_live_while_a_bar_is_redrawn_on_the_other_stream() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        workspace.write_tool("scan.json", &scanner());
        fs::write(workspace.scope().join("scan.sh"), BAR_SCRIPT).unwrap();
        let mut server = options(&workspace).open(era);
        let id = scan(&mut server, era, "info", json!({}));
        for number in 1..=3 {
            let finding = loop {
                let message = server.notification(MESSAGE);
                let finding = &message["params"]["data"]["finding"];
                if finding.is_object() {
                    break finding.clone();
                }
            };
            assert_eq!(finding["cve"], format!("CVE-2026-{number}"), "{finding}");
            assert_eq!(finding["location"], format!("port/{number}"));
            fs::write(workspace.scope().join(format!("go{number}")), "").unwrap();
        }
        let result = &server.answer(id)["result"]["structuredContent"];
        assert_eq!(result["finding_counts"]["high"], 3, "{result}");
        let lines: Vec<&str> = result["output"].as_str().unwrap().lines().collect();
        let whole = (1..=3).map(|n| format!("hole high CVE-2026-{n} at port/{n}: old server; do update"));
        assert_eq!(&lines[..3], whole.collect::<Vec<_>>(), "{result}");
        assert_eq!(lines[3..], ["40 percent"], "{result}");
    }
}

#[test]
fn a_scan_that_is_cut_off_keeps_its_findings_and_says_so() {
    for era in Era::BOTH {
        let workspace = Workspace::new();
        scanning(&workspace);
        let mut server = options(&workspace).open(era);
        let arguments = json!({"script": "scan.sh", "timeout_seconds": 5});
        let result = server.tool("scan", arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"]["status"], "timed_out", "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with("timed out after 5"), "{text}");
        assert!(first.contains("40%"), "{text}");
        assert!(rest.contains("findings until then: 1 high, 1 low"), "{text}");
        assert!(rest.contains("CVE-2026-1: old server (port/80)"), "{text}");
        assert!(rest.contains("CVE-2026-2"), "{text}");
    }
}
