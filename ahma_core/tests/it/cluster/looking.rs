//! A cluster as operators see it: `doctor`, `/metrics` and `/healthz`.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use test_support::{Era, HttpServer, Nats, ServerOptions, wait_for};

use super::pool::{Cluster, ended, start};

/// The checks of the cluster by `doctor`: status and text of each.
fn doctor(options: &ServerOptions) -> Vec<(String, String)> {
    let done = options.clone().args(["doctor", "--json"]).command().output();
    let report: Value = serde_json::from_slice(&done.unwrap().stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let cluster = checks.iter().filter(|check| check["area"] == "cluster");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    cluster
        .map(|check| {
            let all = format!("{} {}", text(&check["what"]), text(&check["fix"]));
            (text(&check["status"]), all)
        })
        .collect()
}

#[track_caller]
fn tells(checks: &[(String, String)], status: &str, text: &str) {
    let told = checks
        .iter()
        .any(|(found, what)| found == status && what.contains(text));
    assert!(told, "{status}, {text}: {checks:#?}");
}

#[test]
fn doctor_tells_what_is_wrong_with_a_cluster() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let checks = doctor(&cluster.options());
    tells(&checks, "note", "no key");
    tells(&checks, "ok", "nats-server 2.");
    for stream in ["OPS", "JOBS", "OUT"] {
        tells(&checks, "ok", &format!("stream AHMA_DEFAULT_{stream}"));
    }
    tells(&checks, "warning", "no worker of pool default answers");

    let _worker = cluster.worker();
    wait_for("the worker to answer", || {
        let checks = doctor(&cluster.options());
        let mut checks = checks.iter();
        checks
            .any(|(_, what)| what.contains("0 of 4 running"))
            .then_some(())
    });

    let elsewhere = cluster.options().args(["--pool", "gpu"]);
    tells(&doctor(&elsewhere), "problem", "ahma_mcp cluster init");

    cluster.nats.kill();
    tells(&doctor(&cluster.options()), "problem", "cannot connect to NATS");
}

#[test]
fn each_role_works_with_its_key_and_doctor_tells_which_may_not_look() {
    let keys = tempfile::tempdir().unwrap();
    let workspace = test_support::Workspace::new();
    let make = crate::session::options(&workspace).args(["cluster", "keys", "--directory"]);
    let made = make.args([keys.path()]).command().output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let account = keys.path().join("default-account.conf");
    let conf = keys.path().join("nats.conf");
    fs::write(
        &conf,
        format!(
            "accounts {{ include \"{}\" }}",
            account.file_name().unwrap().display()
        ),
    )
    .unwrap();
    let Some(nats) = Nats::start_with(&["-c", conf.to_str().unwrap()]) else {
        return;
    };
    let with = |role: &str| {
        crate::session::options(&workspace)
            .env("AHMA_CLUSTER", nats.address())
            .env("AHMA_CLUSTER_KEY", keys.path().join(format!("default-{role}.nk")))
    };
    let init = with("operator").args(["cluster", "init", "--max-output", "64M"]);
    let init = init.command().output().unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
    let checks = doctor(&with("operator"));
    tells(&checks, "ok", "stream AHMA_DEFAULT_OUT");
    tells(&checks, "warning", "no worker of pool default answers");
    let signed = |name: &str| keys.path().join(format!("default-{name}"));
    let worker = with("worker").args(["worker", "--request-keys"]);
    let worker = worker.args([signed("request-keys")]).start();
    wait_for("the worker", || {
        worker.complaints().contains("serves pool").then_some(())
    });
    let front = with("front-end").args(["--signing-key"]);
    let mut front = front.args([signed("signing.nk")]).open(Era::Legacy);
    let id = start(&mut front, "echo signed");
    assert_eq!(ended(&mut front, &id)["output"], "signed\n");
    tells(&doctor(&with("operator")), "ok", " running");
    let checks = doctor(&with("worker"));
    tells(
        &checks,
        "problem",
        "does not let this process use $JS.API.STREAM.INFO.AHMA_DEFAULT_JOBS",
    );
    tells(&checks, "problem", "default-worker.nk is of another role");

    let failed = |options: ServerOptions| {
        let ended = options.args(["worker"]).command().output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        String::from_utf8_lossy(&ended.stderr).into_owned()
    };
    let said = failed(with("front-end"));
    assert!(said.contains("default-front-end.nk is of another role"), "{said}");
    let said = failed(crate::session::options(&workspace).env("AHMA_CLUSTER", nats.address()));
    assert!(
        said.contains("does not accept our key") && said.contains("--cluster-key FILE"),
        "{said}"
    );
}

#[test]
fn a_front_end_tells_its_proxy_when_nats_is_gone_and_its_figures_to_prometheus() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let flags = ["--mode", "http", "--http-port", "0", "--metrics"];
    let front = HttpServer::start(&cluster.options().args(flags));
    let shows = |line: &str| {
        wait_for(line, || {
            front
                .get("/metrics")
                .1
                .lines()
                .any(|found| found == line)
                .then_some(())
        });
    };
    shows("ahma_cluster_workers 0");
    let worker = cluster.worker_with(&["--max-operations", "1"]);
    shows("ahma_cluster_workers 1");
    shows("ahma_cluster_slots 1");
    let mut client = cluster.front_end(Era::Legacy);
    for _ in 0..2 {
        start(&mut client, "sleep 1000");
    }
    shows("ahma_cluster_operations{state=\"running\"} 1");
    shows("ahma_cluster_operations{state=\"queued\"} 1");
    shows("ahma_cluster_verdicts_total 0");
    worker.signal(Signal::KILL);
    shows("ahma_cluster_verdicts_total 1");
    shows("ahma_cluster_workers 0");

    let health = (200, "{\"status\":\"ok\"}".to_owned());
    assert_eq!(front.get("/healthz"), health);
    cluster.nats.kill();
    let gone = (503, "{\"status\":\"NATS does not answer\"}".to_owned());
    wait_for("the front end to turn clients away", || {
        (front.get("/healthz") == gone).then_some(())
    });
    shows("ahma_cluster_connected 0");
    cluster.nats.restart();
    wait_for("the front end to take clients", || {
        (front.get("/healthz") == health).then_some(())
    });
    shows("ahma_cluster_connected 1");
}
