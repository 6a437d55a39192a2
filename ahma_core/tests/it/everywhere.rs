//! One behaviour, all ways in: the same scenarios over stdio, Streamable HTTP (shared and isolated) and HTTP+SSE, in
//! every era that the way has. What a client is told must be the same, but for ids, times and places.

use std::{collections::BTreeMap, fs};

use serde_json::{Map, Value, json};
use test_support::{Client, Era, HttpServer, Roots, Server, Workspace};

use crate::{
    live::scanner,
    seatbelt,
    session::{echo, options},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    /// The same, with commands started as on macOS.
    Seatbelt,
    Shared,
    Isolated,
    Sse,
}

const WAYS: [(Way, Era); 9] = [
    (Way::Stdio, Era::Legacy),
    (Way::Seatbelt, Era::Legacy),
    (Way::Shared, Era::Legacy),
    (Way::Isolated, Era::Legacy),
    (Way::Sse, Era::Legacy),
    (Way::Stdio, Era::Modern),
    (Way::Seatbelt, Era::Modern),
    (Way::Shared, Era::Modern),
    (Way::Isolated, Era::Modern),
];

/// A server in a workspace, and a client of it.
struct Visit {
    workspace: Workspace,
    era: Era,
    // Dropped before the servers, so that a session can still be ended.
    client: Option<Client>,
    stdio: Option<Server>,
    _listening: Option<HttpServer>,
}

impl Visit {
    fn begin(way: Way, era: Era) -> Self {
        let workspace = Workspace::new();
        workspace.write_tool("say.json", &echo("say"));
        workspace.write_tool("scan.json", &scanner());
        workspace.write_tool(
            "steps.json",
            &json!({"name": "steps", "description": "Two steps.", "command": "sequence", "synchronous": true, "sequence": [
                {"tool": "say", "args": {"format": "one\n"}}, {"tool": "say", "args": {"format": "two\n"}},
            ]}),
        );
        let options = options(&workspace);
        let mut visit = Self {
            era,
            client: None,
            stdio: None,
            _listening: None,
            workspace,
        };
        let over_pipes = match way {
            Way::Stdio => Some(options.clone()),
            Way::Seatbelt => Some(seatbelt::confined(options.clone())),
            Way::Shared | Way::Isolated | Way::Sse => None,
        };
        if let Some(options) = over_pipes {
            visit.stdio = Some(options.open(era));
            return visit;
        }
        let listening = options.args(["--mode", "http", "--http-port", "0"]);
        let listening = HttpServer::start(&match way {
            Way::Isolated => listening.args(["--session-isolation"]),
            _ => listening,
        });
        let scope = visit.workspace.scope();
        let roots = if way == Way::Isolated {
            Roots::One(&scope)
        } else {
            Roots::None
        };
        visit.client = Some(match (way, era) {
            (Way::Sse, _) => listening.sse(roots),
            (_, Era::Legacy) => listening.session(roots),
            (_, Era::Modern) => listening.sessionless(),
        });
        visit._listening = Some(listening);
        visit
    }

    fn client(&mut self) -> &mut Client {
        match &mut self.stdio {
            Some(server) => server,
            None => self.client.as_mut().unwrap(),
        }
    }

    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.client().tool(name, arguments)
    }

    fn shell(&mut self, command: &str, mode: &str) -> Value {
        self.tool(
            "sandboxed_shell",
            json!({"command": command, "execution_mode": mode}),
        )
    }

    fn start(&mut self, command: &str) -> String {
        let started = self.shell(command, "asynchronous");
        started["structuredContent"]["operation_id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn release(&self, name: &str) {
        fs::write(self.workspace.scope().join(name), "").unwrap();
    }
}

type Scenario = fn(&mut Visit) -> Value;

const SCENARIOS: [(&str, Scenario); 20] = [
    ("list", |visit| {
        visit.client().call("tools/list", json!({}))["result"]["tools"].take()
    }),
    ("call", |visit| {
        visit.tool("say", json!({"format": "%s|", "words": ["it's", "a b", "$HOME"]}))
    }),
    ("synchronous", |visit| {
        visit.shell("echo out; echo err >&2", "synchronous")
    }),
    ("failure", |visit| {
        visit.shell("echo before; exit 7", "synchronous")
    }),
    ("asynchronous", |visit| visit.shell("echo later", "asynchronous")),
    ("await", |visit| {
        let ids = [visit.start("echo one"), visit.start("echo two; exit 3")];
        let mut waited = visit.tool("await", json!({"operation_ids": ids}));
        sort_operations(&mut waited);
        waited
    }),
    ("cancel", |visit| {
        // No `touch`: bash does not die of an interrupt while a child runs that then ends well.
        let id = visit.start("echo begun; : >begun; sleep 1000");
        let begun = visit.workspace.scope().join("begun");
        test_support::wait_for("the command to begin", || begun.exists().then_some(()));
        visit.tool(
            "cancel",
            json!({"operation_id": id, "reason": "no longer wanted"}),
        )
    }),
    ("timeout", |visit| {
        visit.tool(
            "sandboxed_shell",
            json!({"command": "echo partial; sleep 1000", "execution_mode": "synchronous", "timeout_seconds": 5}),
        )
    }),
    ("bad arguments", |visit| {
        visit.tool("say", json!({"format": 3, "colour": "red"}))
    }),
    ("unknown tool", |visit| {
        visit
            .client()
            .call("tools/call", json!({"name": "sya", "arguments": {}}))["error"]
            .take()
    }),
    ("unknown method", |visit| {
        visit.client().call("no/such", json!({}))["error"]["code"].take()
    }),
    ("unreadable arguments", |visit| {
        let too_deep = (0..200).fold(json!([]), |inner, _| json!([inner]));
        let params = json!({"name": "say", "arguments": {"format": too_deep}});
        visit.client().call("tools/call", params)["error"]["code"].take()
    }),
    ("progress", |visit| {
        fs::write(
            visit.workspace.scope().join("slow.sh"),
            "echo 40 percent; until [ -e seen ]; do sleep 0.02; done; echo 80 percent",
        )
        .unwrap();
        let id = visit.client().request(
            "tools/call",
            json!({"name": "scan", "arguments": {"script": "slow.sh"}, "_meta": {"progressToken": "mine"}}),
        );
        let told = visit.client().expect("40 percent", |message| {
            message["method"] == "notifications/progress" && message["params"]["progress"] == 40.0
        });
        visit.release("seen");
        let answer = visit.client().answer(id);
        json!([
            told["params"]["progressToken"],
            told["params"]["total"],
            answer["result"]
        ])
    }),
    ("findings", |visit| {
        fs::write(
            visit.workspace.scope().join("find.sh"),
            "echo 'hole high CVE-2026-1 at port/80: old; do update'",
        )
        .unwrap();
        visit.tool("scan", json!({"script": "find.sh"}))
    }),
    ("log messages", |visit| {
        let mut params = json!({"name": "sandboxed_shell",
            "arguments": {"command": "echo told", "execution_mode": "synchronous"}});
        match visit.era {
            Era::Legacy => _ = visit.client().call("logging/setLevel", json!({"level": "info"})),
            Era::Modern => params["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into(),
        }
        let id = visit.client().request("tools/call", params);
        let told = visit.client().notification("notifications/message");
        assert_eq!(told["params"]["_meta"]["ahma/relatedRequestId"], id);
        visit.client().answer(id);
        json!([
            told["params"]["level"],
            told["params"]["logger"],
            told["params"]["data"]
        ])
    }),
    ("big output", |visit| {
        let mut result = visit.shell("seq 1 100000", "synchronous");
        let id = result["structuredContent"]["operation_id"].clone();
        let end = visit.tool("output", json!({"operation_id": id, "tail": 2}));
        let found = visit.tool(
            "output",
            json!({"operation_id": id, "grep": "^7777\\d$", "context": 1}),
        );
        json!([result["structuredContent"].take(), end, found])
    }),
    ("sequence", |visit| visit.tool("steps", json!({}))),
    ("denied write", |visit| {
        let result = visit.shell("echo x > /etc/ahma-was-here", "synchronous");
        assert!(!std::path::Path::new("/etc/ahma-was-here").exists());
        result
    }),
    ("resources", |visit| {
        let id = visit.shell("echo kept", "synchronous")["structuredContent"]["operation_id"].take();
        let uri = format!("ahma://operations/{}/output", id.as_str().unwrap());
        let read = visit.client().call("resources/read", json!({"uri": uri}));
        let listed = visit.client().call("resources/list", json!({}));
        json!([read["result"]["contents"], listed["result"]["resources"]])
    }),
    ("reload", |visit| {
        if visit.era == Era::Modern {
            visit.client().request(
                "subscriptions/listen",
                json!({"notifications": {"toolsListChanged": true}}),
            );
            visit
                .client()
                .notification("notifications/subscriptions/acknowledged");
        }
        visit.workspace.write_tool("fresh.json", &echo("fresh"));
        visit.client().notification("notifications/tools/list_changed");
        visit.tool("fresh", json!({"format": "new"}))
    }),
];

/// Operations that ended at the same time may be listed in any order.
fn sort_operations(result: &mut Value) {
    let rows = result["structuredContent"]["operations"].as_array_mut().unwrap();
    rows.sort_by_key(|row| row["output"].to_string());
    result["content"].take();
}

/// The part that is the same in every run: ids, times and places have names of their own.
fn plain(value: Value, scope: &str) -> Value {
    const MEASURED: [&str; 5] = [
        "duration_seconds",
        "cpu_seconds",
        "peak_memory_bytes",
        "eta_seconds",
        "_meta",
    ];
    match value {
        Value::Object(object) => object
            .into_iter()
            .filter(|(name, _)| !MEASURED.contains(&name.as_str()))
            .map(|(name, value)| (name, plain(value, scope)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(|item| plain(item, scope)).collect(),
        Value::String(text) => {
            let id = regex::Regex::new(r"op_[0-9a-z]{10}").unwrap();
            let time = regex::Regex::new(r"(after|for) [0-9.]+ s").unwrap();
            let text = text.replace(scope, "SCOPE");
            time.replace_all(&id.replace_all(&text, "op_ID"), "$1 T s")
                .into_owned()
                .into()
        }
        other => other,
    }
}

#[test]
fn the_same_is_answered_by_every_way_in() {
    let mut seen: BTreeMap<&str, Vec<(Way, Era, Value)>> = BTreeMap::new();
    for (way, era) in WAYS {
        let mut visit = Visit::begin(way, era);
        let scope = visit.workspace.scope().display().to_string();
        for (name, scenario) in SCENARIOS {
            let answer = plain(scenario(&mut visit), &scope);
            assert!(!answer.is_null(), "{name}: {way:?} {era:?}");
            seen.entry(name).or_default().push((way, era, answer));
        }
    }
    for (name, answers) in seen {
        for (way, era, answer) in &answers {
            let (_, _, over_stdio) = answers
                .iter()
                .find(|(way, of, _)| *way == Way::Stdio && of == era)
                .unwrap();
            // Each kernel refuses in words of its own.
            if *way == Way::Seatbelt && name == "denied write" {
                let said = answer["structuredContent"]["sandbox_hint"].as_str().unwrap();
                assert!(said.contains("/etc/ahma-was-here cannot be written"), "{said}");
                continue;
            }
            assert_eq!(answer, over_stdio, "{name}: {way:?} {era:?} against stdio");
            // What the eras say about the protocol differs; what the tools say does not.
            let (_, _, first) = &answers[0];
            let content = |answer: &Value| answer.get("structuredContent").cloned();
            assert_eq!(
                content(answer),
                content(first),
                "{name}: {way:?} {era:?} against the older era"
            );
        }
    }
}
