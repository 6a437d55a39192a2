//! Messages when something is missing or does not fit.

use serde_json::json;
use test_support::{Era, Nats, Workspace, wait_for};

use super::pool::{Cluster, LEASE, counted, ended, printed, start};
use crate::session::options;

#[test]
fn tools_are_those_of_living_workers() {
    let Some(cluster) = Cluster::start() else { return };
    let mut client = cluster.front_end(Era::Legacy);
    let refused = client.tool("sandboxed_shell", json!({"command": "true"}));
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no worker of pool default is alive"), "{text}");

    cluster
        .workspace
        .write_tool("echo.json", &crate::session::echo("say"));
    let mut worker = cluster.worker();
    wait_for("the tools of the worker", || {
        client.tool_names().contains(&"say".to_owned()).then_some(())
    });
    let said = client.tool("say", json!({"format": "hello"}));
    assert_eq!(said["structuredContent"]["output"], "hello", "{said}");
    // An operation is let go a moment after its end is told.
    wait_for("the worker to be idle", || {
        cluster
            .administer(&["status"])
            .contains("0 of 4 running")
            .then_some(())
    });

    worker.signal(rustix::process::Signal::TERM);
    worker.wait();
    wait_for("the end of the worker to be noticed", || {
        let refused = client.tool(
            "say",
            json!({"format": "hello", "execution_mode": "asynchronous"}),
        );
        refused
            .to_string()
            .contains("no worker of pool default is alive")
            .then_some(())
    });
    assert!(cluster.administer(&["status"]).contains("no worker is alive"));
}

#[test]
fn a_worker_in_another_directory_says_so_unless_it_is_mapped() {
    let Some(cluster) = Cluster::start() else { return };
    let elsewhere = Workspace::new();
    let worker = |flags: &[&str]| {
        let options = options(&elsewhere)
            .env("AHMA_CLUSTER", cluster.nats.address())
            .env("AHMA_CLUSTER_LEASE", LEASE)
            .args(["worker"])
            .args(flags);
        let worker = options.start();
        wait_for("the worker", || {
            worker.complaints().contains("serves pool").then_some(())
        });
        worker
    };
    let mut client = cluster.front_end(Era::Legacy);
    let theirs = cluster.workspace.scope();
    let mut other = worker(&[]);
    wait_for("its tools", || {
        client
            .tool_names()
            .contains(&"sandboxed_shell".to_owned())
            .then_some(())
    });
    let id = start(&mut client, "pwd");
    let report = ended(&mut client, &id);
    assert_eq!(report["status"], "failed", "{report}");
    assert!(
        report["reason"].as_str().unwrap().contains("--mapped-from"),
        "{report}"
    );
    other.signal(rustix::process::Signal::TERM);
    other.wait();

    let _mapped = worker(&["--mapped-from", theirs.to_str().unwrap()]);
    std::fs::create_dir(elsewhere.scope().join("sub")).unwrap();
    let arguments =
        json!({"command": "pwd", "working_directory": theirs.join("sub"), "execution_mode": "synchronous"});
    wait_for("the mapped worker", || {
        let ran = client.tool("sandboxed_shell", arguments.clone());
        let expected = format!("{}\n", elsewhere.scope().join("sub").display());
        (ran["structuredContent"]["output"] == expected.as_str()).then_some(())
    });
}

#[test]
fn the_sandbox_is_that_of_the_worker() {
    let Some(cluster) = Cluster::start() else { return };
    let worker = cluster.worker_with(&["--no-sandbox"]);
    let said = worker.complaints();
    let scope = cluster.workspace.scope();
    for expected in [
        "sandbox   off",
        scope.to_str().unwrap(),
        "4 operations at once",
        "ahma_mcp cluster keys",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let mut client = cluster.options().args(["--network", "off"]).open(Era::Legacy);
    let id = start(&mut client, "echo hi");
    let answer = client.tool("await", json!({"operation_ids": [id], "timeout_seconds": 50}));
    assert!(answer.to_string().contains("NO SANDBOX"), "{answer}");
    let told = json!({"pool": "default", "scope": scope});
    assert_eq!(answer["_meta"]["ahma/sandbox"], told, "{answer}");

    let mut front = cluster.http_front_end();
    let said = wait_for("the summary", || {
        let said = front.process().complaints();
        said.contains("console").then_some(said)
    });
    assert!(said.contains("the workers of pool default"), "{said}");
    assert!(!said.contains("network"), "{said}");
}

#[test]
fn a_full_queue_is_told_to_the_model_and_takes_calls_again_when_it_has_room() {
    let Some(nats) = Nats::start() else { return };
    let cluster = Cluster::on(nats, &["--max-queue", "2"]);
    let _worker = cluster.worker_with(&["--max-operations", "1"]);
    let mut client = cluster.front_end(Era::Modern);
    let mut ids = vec![start(
        &mut client,
        "echo begun; until [ -e go ]; do sleep 0.05; done",
    )];
    printed(&mut client, &ids[0], "begun");
    ids.extend((0..2).map(|_| start(&mut client, "true")));
    let call = json!({"command": counted("refused", "true"), "execution_mode": "asynchronous"});
    let refused = client.tool("sandboxed_shell", call);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        refused["isError"] == true && text.contains("2 operations wait ahead of it"),
        "{refused}"
    );

    std::fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    for id in ids {
        assert_eq!(ended(&mut client, &id)["status"], "completed");
    }
    let next = start(&mut client, &counted("next", "true"));
    assert_eq!(ended(&mut client, &next)["status"], "completed");
    assert_eq!(cluster.runs(), ["next"]);
}

#[test]
fn a_cluster_that_cannot_be_used_is_told_at_start() {
    let workspace = Workspace::new();
    let failed = |address: &str, words: &[&str]| {
        let command = options(&workspace).args(["--cluster", address]).args(words);
        let ended = command.command().output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        String::from_utf8_lossy(&ended.stderr).into_owned()
    };
    let nobody = format!("nats://127.0.0.1:{}", test_support::quiet_port());
    for words in [&[][..], &["worker"], &["cluster", "status"]] {
        let said = failed(&nobody, words);
        assert!(
            said.contains("cannot connect to NATS") && said.contains("hint:"),
            "{said}"
        );
    }
    for words in [&[][..], &["worker"], &["cluster", "status"]] {
        let said = failed("nats://anna:secret@127.0.0.1", words);
        assert!(
            said.contains("--cluster-key") && !said.contains("secret"),
            "{said}"
        );
    }
    let Some(nats) = Nats::start() else { return };
    for words in [&[][..], &["worker"], &["cluster", "status"]] {
        let said = failed(&nats.address(), words);
        assert!(said.contains("ahma_mcp cluster init"), "{said}");
    }
}
