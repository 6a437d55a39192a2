//! A NATS server, and workers and front ends that share a workspace.

use std::fs;

use serde_json::{Value, json};
use test_support::{Client, Era, HttpServer, Nats, Server, ServerOptions, Workspace, wait_for};

use crate::session::options;

/// Short, so that tests are; long enough for a busy machine to beat in time.
pub(super) const LEASE: &str = "3s";

pub(super) struct Cluster {
    pub(super) nats: Nats,
    pub(super) workspace: Workspace,
}

impl Cluster {
    /// Nothing where there is no NATS server.
    pub(super) fn start() -> Option<Self> {
        Some(Self::on(Nats::start()?, &[]))
    }

    /// The same on these servers, made with these flags.
    pub(super) fn on(nats: Nats, flags: &[&str]) -> Self {
        let workspace = Workspace::new();
        let cluster = Self { nats, workspace };
        // The server reserves what is asked for, and disks of test machines are small.
        let words = [&["init", "--max-output", "64M"], flags].concat();
        // Servers that have just found each other need a while to agree.
        wait_for("the streams", || {
            let (success, said) = cluster.tell(&words);
            assert!(success || !flags.is_empty(), "{said}");
            said.contains("pool default is ready").then_some(())
        });
        cluster
    }

    /// `ahma_mcp cluster …`; gives what it says.
    pub(super) fn administer(&self, words: &[&str]) -> String {
        let (success, said) = self.tell(words);
        assert!(success, "{said}");
        said
    }

    /// Its success, and what it says.
    pub(super) fn tell(&self, words: &[&str]) -> (bool, String) {
        let command = self.options().args(["cluster"]).args(words);
        let done = command.command().output().unwrap();
        let said = if done.status.success() {
            done.stdout
        } else {
            done.stderr
        };
        (done.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    pub(super) fn options(&self) -> ServerOptions {
        options(&self.workspace)
            .env("AHMA_CLUSTER", self.nats.address())
            .env("AHMA_CLUSTER_LEASE", LEASE)
    }

    /// A worker that is ready.
    pub(super) fn worker(&self) -> Server {
        self.worker_with(&[])
    }

    pub(super) fn worker_with(&self, flags: &[&str]) -> Server {
        let options = self
            .options()
            .args(["worker", "--max-operations", "4"])
            .args(flags);
        let mut worker = options.start();
        wait_for("the worker", || {
            let said = worker.complaints();
            assert!(worker.is_running(), "the worker ended: {said}");
            said.contains("serves pool").then_some(())
        });
        worker
    }

    /// A front end on stdio.
    pub(super) fn front_end(&self, era: Era) -> Server {
        self.options().open(era)
    }

    /// A front end over HTTP.
    pub(super) fn http_front_end(&self) -> HttpServer {
        HttpServer::start(&self.options().args(["--mode", "http", "--http-port", "0"]))
    }

    /// A line for every run of a command that [`counted`] made.
    pub(super) fn runs(&self) -> Vec<String> {
        let text = fs::read_to_string(self.workspace.scope().join("runs")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// A command that first leaves a trace of its run.
pub(super) fn counted(name: &str, command: &str) -> String {
    format!("echo {name} >> runs; {command}")
}

/// Starts a command in the background; gives its id.
#[track_caller]
pub(super) fn start(client: &mut Client, command: &str) -> String {
    let arguments = json!({"command": command, "execution_mode": "asynchronous"});
    accepted(|| client.tool("sandboxed_shell", arguments.clone()))
}

/// Calls until it is taken, and gives the id. While no worker is known a call is refused, and leaves nothing.
#[track_caller]
pub(super) fn accepted(mut call: impl FnMut() -> Value) -> String {
    wait_for("a worker to be known", || {
        let started = call();
        let id = started["structuredContent"]["operation_id"].as_str();
        assert!(
            id.is_some() || started.to_string().contains("no worker of pool"),
            "{started}"
        );
        id.map(str::to_owned)
    })
}

/// The report of one operation by `await`, when it has ended.
#[track_caller]
pub(super) fn ended(client: &mut Client, id: &str) -> Value {
    let mut answer = client.tool("await", json!({"operation_ids": [id], "timeout_seconds": 50}));
    let report = answer["structuredContent"]["operations"][0].take();
    assert!(report.is_object(), "{answer}");
    report
}

/// Waits for a line of output.
#[track_caller]
pub(super) fn printed(client: &mut Client, id: &str, line: &str) {
    let arguments = json!({"operation_ids": [id], "until_line": format!("^{line}$"), "timeout_seconds": 50});
    let answer = client.tool("await", arguments);
    assert_eq!(answer["structuredContent"]["reason"], "line_found", "{answer}");
}

/// All of the output, page by page.
#[track_caller]
pub(super) fn whole_output(client: &mut Client, id: &str) -> String {
    let mut text = String::new();
    let mut line = 1;
    loop {
        let page = client.tool("output", json!({"operation_id": id, "from_line": line}));
        let page = &page["structuredContent"];
        text.push_str(page["text"].as_str().unwrap_or_else(|| panic!("{page}")));
        line += page["lines"].as_u64().unwrap_or_else(|| panic!("{page}"));
        if line > page["total_lines"].as_u64().unwrap() {
            return text;
        }
    }
}
