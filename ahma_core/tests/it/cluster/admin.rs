//! Looking after a pool from any front end, and finding what ran there.

use std::{fs, process::Output};

use serde_json::{Value, json};
use test_support::{Client, Era, HttpServer, Roots, wait_for};

use super::pool::{Cluster, ended, start};
use crate::session::options;

fn ahma_mcp(cluster: &Cluster, words: &[&str]) -> Output {
    options(&cluster.workspace)
        .args(words)
        .command()
        .output()
        .unwrap()
}

/// A token of its own file, for a role.
pub(super) fn issue(cluster: &Cluster, name: &str, role: &str) -> String {
    let file = cluster.workspace.home().join("tokens.json");
    let words = ["token", "new", "--name", name, "--role", role, "--file"];
    let words = [&words[..], &[file.to_str().unwrap()]].concat();
    let issued = ahma_mcp(cluster, &words);
    assert!(issued.status.success(), "{issued:?}");
    let token = String::from_utf8(issued.stdout).unwrap().trim().to_owned();
    fs::write(cluster.workspace.home().join(name), &token).unwrap();
    token
}

pub(super) fn front_end(cluster: &Cluster) -> HttpServer {
    front_end_with(cluster, &[])
}

pub(super) fn front_end_with(cluster: &Cluster, flags: &[&str]) -> HttpServer {
    let options = cluster
        .options()
        .args(["--mode", "http", "--http-port", "0", "--tokens-file"])
        .args([cluster.workspace.home().join("tokens.json")])
        .args(flags);
    HttpServer::start(&options)
}

/// `ahma_mcp admin …` against one front end.
fn admin(cluster: &Cluster, at: &HttpServer, words: &[&str]) -> String {
    let url = format!("http://{}", at.address());
    let token = cluster.workspace.home().join("boss");
    let words = [&["admin"], words, &["--admin-url", &url, "--admin-token-file"]].concat();
    let done = ahma_mcp(cluster, &[&words[..], &[token.to_str().unwrap()]].concat());
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn listed(cluster: &Cluster, at: &HttpServer, id: &str) -> Option<Value> {
    let text = admin(cluster, at, &["operations", "--format", "json"]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    let operations = answer["operations"].as_array().unwrap().clone();
    operations.into_iter().find(|operation| operation["id"] == id)
}

#[test]
fn an_operator_sees_and_stops_what_any_front_end_has_started() {
    let Some(cluster) = Cluster::start() else { return };
    let anna = issue(&cluster, "anna", "agent");
    issue(&cluster, "boss", "operator");
    let _worker = cluster.worker();
    let (one, two) = (front_end(&cluster), front_end(&cluster));
    let mut client = one.session_as(&anna, Roots::None);
    let short = start(&mut client, "echo short; exit 3");
    ended(&mut client, &short);
    let long = start(&mut client, "echo begun; sleep 1000");

    let row = wait_for("the output of the running one", || {
        listed(&cluster, &two, &long).filter(|row| row["newest_line"] == "begun")
    });
    assert_eq!(
        (&row["status"], &row["principal"]),
        (&json!("running"), &json!("anna"))
    );
    assert!(row["worker"].is_string() && row["since"].is_string(), "{row}");
    let ended_here = listed(&cluster, &one, &short).unwrap();
    let mut ended_there = listed(&cluster, &two, &short).unwrap();
    assert_eq!(
        (&ended_there["status"], &ended_there["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    // Only the front end that took the call knows the session, when it heard of it, and the line it read last.
    for known_to_one in ["session", "since", "newest_line"] {
        ended_there[known_to_one] = ended_here[known_to_one].clone();
    }
    assert_eq!(ended_there, ended_here);
    let table = admin(&cluster, &two, &["operations"]);
    assert!(
        table.contains("WORKER") && table.contains(row["worker"].as_str().unwrap()),
        "{table}"
    );

    assert_eq!(admin(&cluster, &two, &["tail", &short]), "short\n");
    let said = admin(&cluster, &two, &["cancel", &long, "--reason", "too loud"]);
    assert_eq!(said, format!("{long} is cancelled\n"));
    let report = ended(&mut client, &long);
    assert_eq!(report["status"], "cancelled", "{report}");
    assert!(
        report["reason"].as_str().unwrap().contains("too loud"),
        "{report}"
    );
    assert_eq!(admin(&cluster, &two, &["tail", &long]), "begun\n");
}

#[test]
fn the_pool_is_searched_from_any_front_end_by_its_own_principal() {
    let Some(cluster) = Cluster::start() else { return };
    let (anna, bert) = (issue(&cluster, "anna", "agent"), issue(&cluster, "bert", "agent"));
    let _worker = cluster.worker();
    let (one, two) = (front_end(&cluster), front_end(&cluster));
    let mut early = one.session_as(&anna, Roots::None);
    let ids: Vec<String> = ["echo apple", "echo pear", "echo Apple again"]
        .iter()
        .map(|command| {
            let id = start(&mut early, command);
            ended(&mut early, &id);
            id
        })
        .collect();
    let found = |client: &mut Client, arguments: Value| -> Vec<String> {
        let answer = client.tool("status", arguments);
        let rows = answer["structuredContent"]["operations"].as_array();
        let rows = rows.unwrap_or_else(|| panic!("{answer}"));
        rows.iter()
            .map(|row| row["operation_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut late = two.session_as(&anna, Roots::None);
    let both = [ids[2].clone(), ids[0].clone()];
    assert_eq!(found(&mut late, json!({"text": "APPLE"})), both);
    assert_eq!(
        found(&mut late, json!({"since": "1h", "tool": "sandboxed_shell"})).len(),
        3
    );
    assert!(found(&mut late, json!({"tool": "no_such_tool"})).is_empty());
    let mut stranger = two.session_as(&bert, Roots::None);
    assert!(found(&mut stranger, json!({"text": "apple"})).is_empty());
}

#[test]
fn who_keeps_too_much_output_loses_the_oldest_and_is_told() {
    let Some(cluster) = Cluster::start() else { return };
    let _worker = cluster.worker();
    let mut client = cluster.front_end(Era::Legacy);
    // A quarter of 64 MiB is the limit. The newest alone is over it, and stays.
    let ids: Vec<String> = [62_915, 188_745]
        .iter()
        .map(|lines| {
            let id = start(&mut client, &format!("seq -f %099.0f {lines}"));
            assert_eq!(ended(&mut client, &id)["status"], "completed");
            id
        })
        .collect();
    let mut other = cluster.front_end(Era::Legacy);
    let line_of = |client: &mut Client, id: &str, line: u64| -> String {
        let page = client.tool(
            "output",
            json!({"operation_id": id, "from_line": line, "max_lines": 1}),
        );
        page["structuredContent"].to_string() + page["content"][0]["text"].as_str().unwrap_or_default()
    };
    wait_for("the oldest output to be dropped", || {
        let mut late = cluster.front_end(Era::Modern);
        line_of(&mut late, &ids[0], 1000)
            .contains("newer operations needed the room")
            .then_some(())
    });
    // Its result stays, and so does the output of the newest.
    let report = ended(&mut other, &ids[0]);
    assert_eq!(
        (&report["status"], &report["exit_code"]),
        (&json!("completed"), &json!(0))
    );
    let newest = line_of(&mut other, &ids[1], 1000);
    assert!(newest.contains(&format!("{:0>99}", 1000)), "{newest}");
}
