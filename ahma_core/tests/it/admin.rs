//! The admin API and `ahma_mcp admin`, against a real server: who may use it, what it tells, what it stops.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
    process::Output,
};

use serde_json::{Value, json};
use test_support::{Era, HttpServer, Workspace, wait_for};

use crate::{live::scanner, session::options};

/// A server with tokens of every role, and its audit trail.
pub(crate) struct Served {
    pub(crate) workspace: Workspace,
    pub(crate) server: HttpServer,
}

const ROLES: [&str; 3] = ["agent", "operator", "metrics"];

impl Served {
    pub(crate) fn new(flags: &[&str]) -> Self {
        let workspace = Workspace::new();
        let home = workspace.home();
        let tokens = home.join("tokens.json");
        for role in ROLES {
            let issued = run(
                &workspace,
                &[
                    "token",
                    "new",
                    "--name",
                    &format!("the-{role}"),
                    "--role",
                    role,
                    "--file",
                ],
                &tokens,
            );
            assert!(issued.status.success(), "{issued:?}");
            fs::write(home.join(role), issued.stdout).unwrap();
        }
        let server = HttpServer::start(
            &options(&workspace)
                .args(["--mode", "http", "--http-port", "0", "--metrics", "--tokens-file"])
                .args([&tokens])
                .args(["--audit-file"])
                .args([home.join("audit.jsonl")])
                .args(flags),
        );
        Self { workspace, server }
    }

    pub(crate) fn token(&self, role: &str) -> String {
        fs::read_to_string(self.workspace.home().join(role))
            .unwrap()
            .trim()
            .to_owned()
    }

    /// Status and body of an answer.
    fn ask(&self, role: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let (address, token) = (self.server.address(), self.token(role));
        let mut connection = self.server.connect();
        write!(
            connection,
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, format!("{body}\n{head}"))
    }

    /// The answer of the admin API, which has the form that the schema gives it.
    #[track_caller]
    fn admin(&self, method: &str, path: &str, body: &str, form: &str) -> Value {
        let (status, answer) = self.ask("operator", method, &format!("/admin/v1/{path}"), "", body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        let answer: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas/admin.schema.json");
        let mut schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
        schema["$ref"] = format!("#/$defs/{form}").into();
        let mistakes: Vec<String> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&answer)
            .map(|mistake| mistake.to_string())
            .collect();
        assert_eq!(mistakes, Vec::<String>::new(), "{method} {path}: {answer:#}");
        answer
    }

    /// A session of the agent.
    pub(crate) fn session(&self) -> String {
        self.session_of(&json!({"name": "editor", "version": "7"}))
    }

    pub(crate) fn session_of(&self, client: &Value) -> String {
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}});
        let (_, answer) = self.ask("agent", "POST", "/mcp", "", &initialize.to_string());
        let id = answer
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = id.unwrap_or_else(|| panic!("{answer}")).trim().to_owned();
        self.post(
            &session,
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        );
        session
    }

    fn post(&self, session: &str, message: Value) -> Value {
        let headers = format!("mcp-session-id: {session}\r\n");
        let (_, answer) = self.ask("agent", "POST", "/mcp", &headers, &message.to_string());
        serde_json::from_str(answer.lines().next().unwrap_or_default()).unwrap_or_default()
    }

    pub(crate) fn call(&self, session: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.post(
            session,
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}),
        )
    }

    pub(crate) fn start(&self, session: &str, command: &str) -> String {
        let arguments = json!({"command": command, "execution_mode": "asynchronous"});
        let started = self.call(session, "sandboxed_shell", arguments);
        let id = started["result"]["_meta"]["ahma/operation"]["operation_id"].as_str();
        id.unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    fn command(&self, words: &[&str]) -> Output {
        let url = format!("http://{}", self.server.address());
        let mut words = words.to_vec();
        words.extend(["--admin-url", &url, "--admin-token-file"]);
        run(&self.workspace, &words, &self.workspace.home().join("operator"))
    }
}

fn run(workspace: &Workspace, words: &[&str], file: &Path) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ahma_mcp"));
    command
        .env("HOME", workspace.home())
        .current_dir(workspace.scope());
    command.args(words).arg(file).output().unwrap()
}

#[test]
fn each_role_reaches_what_it_is_for_and_nothing_else() {
    let served = Served::new(&[]);
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    for (role, tools, admin, metrics) in [
        ("agent", 200, 403, 200),
        ("operator", 403, 200, 200),
        ("metrics", 403, 403, 200),
    ] {
        let status = |method, path, body| served.ask(role, method, path, "", body).0;
        let found = (
            status("POST", "/mcp", message),
            status("GET", "/admin/v1/sessions", ""),
            status("GET", "/metrics", ""),
        );
        assert_eq!(found, (tools, admin, metrics), "{role}");
    }
}

/// A request from inside the sandbox.
const KNOCK: &str = "exec 3<>/dev/tcp/127.0.0.1/PORT; \
                     printf 'GET /admin/v1/sessions HTTP/1.1\\r\\nhost: 127.0.0.1:PORT\\r\\nconnection: close\\r\\n\\r\\n' >&3; \
                     cat <&3";

#[test]
fn without_tokens_programs_reach_the_admin_api_but_neither_pages_nor_commands() {
    let workspace = Workspace::new();
    let flags = [
        "--mode",
        "http",
        "--http-port",
        "0",
        "--allow-origin",
        "https://ops.example",
    ];
    let server = HttpServer::start(&options(&workspace).args(flags));
    let address = server.address();
    let ask = |method: &str, path: &str, headers: &str| {
        let mut connection = server.connect();
        let host = match headers.contains("host:") {
            true => String::new(),
            false => format!("host: {address}\r\n"),
        };
        write!(
            connection,
            "{method} /admin/v1/{path} HTTP/1.0\r\n{host}{headers}content-length: 0\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
        status
    };
    for (from, headers, status) in [
        ("a program", "", 200),
        (
            "a page of an origin that is named",
            "origin: https://ops.example\r\n",
            200,
        ),
        ("a page of another site", "origin: http://evil.example\r\n", 403),
        ("a page of another port", "origin: http://127.0.0.1:5173\r\n", 403),
        ("a page without an origin", "origin: null\r\n", 403),
        ("a name that leads here", "host: evil.example\r\n", 403),
    ] {
        assert_eq!(ask("GET", "sessions", headers), status, "{from}");
        if status == 403 {
            // The server goes on.
            assert_eq!(ask("POST", "drain", headers), status, "{from}");
            assert_eq!(ask("OPTIONS", "drain", headers), status, "{from}");
        }
    }
    let port = address.rsplit(':').next().unwrap();
    let command = KNOCK.replace("PORT", port);
    let mut agent = options(&workspace).open(Era::Legacy);
    let arguments = json!({"command": command, "execution_mode": "synchronous"});
    let said = agent.tool("sandboxed_shell", arguments).to_string();
    assert!(
        said.contains("HTTP/1.1 403") && said.contains("comes from a command"),
        "{said}"
    );
}

#[test]
fn an_operator_sees_what_runs_and_the_agent_is_told_who_cancelled_it() {
    for isolation in [&[][..], &["--session-isolation"]] {
        let served = Served::new(isolation);
        let session = served.session();
        let id = served.start(&session, "echo first; echo second; sleep 1000");
        let listed = served.admin("GET", "sessions", "", "sessions")["sessions"][0].clone();
        assert_eq!(
            json!([listed["id"], listed["principal"], listed["client"]["name"]]),
            json!([session, "the-agent", "editor"])
        );
        let operation = wait_for("the operation to be listed", || {
            let running = served.admin("GET", "operations?status=running", "", "operations");
            running["operations"].get(0).cloned()
        });
        assert_eq!(
            json!([
                operation["id"],
                operation["principal"],
                operation["program"],
                operation["session"],
                operation["tool"]
            ]),
            json!([id, "the-agent", "editor", session, "sandboxed_shell"]),
            "{isolation:?}"
        );
        wait_for("its output", || {
            let output = served.admin("GET", &format!("operations/{id}/output"), "", "output");
            (output["text"] == "first\nsecond\n").then_some(())
        });
        let rest = served.admin(
            "GET",
            &format!("operations/{id}/output?from_line=2"),
            "",
            "output",
        );
        assert_eq!(rest["text"], "second\n");
        served.admin("GET", &format!("operations/{id}/findings"), "", "findings");

        let path = format!("operations/{id}/cancel");
        let cancelled = served.admin("POST", &path, r#"{"reason":"too loud"}"#, "cancelled");
        assert_eq!(cancelled["stopped"], json!([id]));
        let told = served
            .call(&session, "await", json!({"operation_ids": [id]}))
            .to_string();
        assert!(
            told.contains("the operator the-operator cancelled it: too loud"),
            "{told}"
        );
        assert_eq!(
            served.admin("POST", &path, "{}", "cancelled")["stopped"],
            json!([])
        );
        let trail = fs::read_to_string(served.workspace.home().join("audit.jsonl")).unwrap();
        assert!(
            trail.contains(r#""action":"cancel""#) && trail.contains("too loud"),
            "{trail}"
        );

        served.admin(
            "DELETE",
            &format!("sessions/{session}?reason=upgrade"),
            "",
            "ended_session",
        );
        let (status, _) = served.ask(
            "operator",
            "DELETE",
            &format!("/admin/v1/sessions/{session}"),
            "",
            "",
        );
        assert_eq!(status, 404);
    }
}

#[test]
fn a_revoked_token_is_out_at_once_and_its_work_stops_if_asked() {
    let served = Served::new(&[]);
    let session = served.session();
    let id = served.start(&session, "sleep 1000");
    let tokens = served.admin("GET", "tokens", "", "tokens");
    assert_eq!(tokens["tokens"].as_array().unwrap().len(), ROLES.len());
    let revoked = served.command(&["token", "revoke", "the-agent", "--stop-work"]);
    assert!(revoked.status.success(), "{revoked:?}");
    let again = served.command(&["token", "revoke", "the-agent", "--stop-work"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    assert_eq!(served.ask("agent", "POST", "/mcp", "", message).0, 401);
    let all = served.admin("GET", "operations", "", "operations");
    let status = all["operations"]
        .as_array()
        .unwrap()
        .iter()
        .find(|operation| operation["id"] == id);
    assert_eq!(status.unwrap()["status"], "cancelled", "{all}");
    let trail = fs::read_to_string(served.workspace.home().join("audit.jsonl")).unwrap();
    assert!(trail.contains(r#""action":"revoke_token""#), "{trail}");
    // A name can be given again, with limits.
    let tokens = served.workspace.home().join("tokens.json");
    let scope = served.workspace.scope();
    let limited = [
        "token",
        "new",
        "--name",
        "the-agent",
        "--tools",
        "file_*",
        "--scope",
        &scope.display().to_string(),
        "--file",
    ];
    let issued = run(&served.workspace, &limited, &tokens);
    assert!(issued.status.success(), "{issued:?}");
    let listed = run(&served.workspace, &["token", "list", "--file"], &tokens);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let limits = format!(
        "the-agent: agent, expires never, confined to {}, tools file_*\n",
        scope.display()
    );
    assert!(listed.contains(&limits), "{listed}");
    let revoked = served.admin("DELETE", "tokens/the-agent?stop_work=true", "", "revoked_token");
    assert_eq!(revoked["revoked"], "the-agent");
    // By the file alone.
    assert!(
        run(
            &served.workspace,
            &["token", "revoke", "the-metrics", "--file"],
            &tokens
        )
        .status
        .success()
    );
    assert_eq!(served.ask("metrics", "GET", "/metrics", "", "").0, 401);
    let listed = run(&served.workspace, &["token", "list", "--file"], &tokens);
    assert_eq!(
        String::from_utf8_lossy(&listed.stdout),
        "the-operator: operator, expires never\n"
    );
}

#[test]
fn the_commands_show_and_stop_what_runs() {
    let mut served = Served::new(&[]);
    let session = served.session();
    let id = served.start(&session, "echo hello; sleep 1000");
    let shown = |words: &[&str]| {
        let output = served.command(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let sessions = shown(&["admin", "sessions"]);
    assert!(
        sessions.contains(&session) && sessions.contains("editor"),
        "{sessions}"
    );
    wait_for("what the operation prints", || {
        shown(&["admin", "operations", "--format", "json"])
            .contains(r#""newest_line": "hello""#)
            .then_some(())
    });
    let operations = shown(&["admin", "operations", "--status", "running"]);
    assert!(
        operations.contains(&id) && operations.contains("the-agent"),
        "{operations}"
    );
    for (list, expected) in [("sessions", &session), ("operations", &id), ("history", &id)] {
        let said = shown(&["admin", list, "--format", "json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        let name = if list == "history" { "operations" } else { list };
        assert_eq!(said[name][0]["id"], **expected, "{list}: {said}");
    }
    assert_eq!(
        shown(&["admin", "cancel", &id, "--reason", "done"]),
        format!("{id} is cancelled\n")
    );
    assert_eq!(shown(&["admin", "tail", &id]), "hello\n");
    assert_eq!(
        shown(&["admin", "end", &session]),
        format!("{session} is ended\n")
    );
    let unknown = served.command(&["admin", "cancel", "op_unknown"]);
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        unknown.status.code() == Some(1) && said.contains("op_unknown") && said.contains("hint:"),
        "{said}"
    );
    let draining = served.admin("POST", "drain", "", "drain");
    assert_eq!(draining["draining"], true);
    assert!(served.server.process().wait().success());
}

#[test]
fn what_has_ended_is_told_from_the_history_to_those_who_may_see_it() {
    let mut served = Served::new(&["--session-isolation"]);
    served.workspace.write_tool("scan.json", &scanner());
    fs::write(served.workspace.scope().join("scan.sh"), SCAN).unwrap();
    let session = served.session();
    let arguments = json!({"script": "scan.sh", "execution_mode": "asynchronous"});
    let started = served.call(&session, "scan", arguments);
    let id = started["result"]["_meta"]["ahma/operation"]["operation_id"].as_str();
    let id = id.unwrap_or_else(|| panic!("{started}")).to_owned();
    served.call(
        &session,
        "await",
        json!({"operation_ids": [id], "timeout_seconds": 30}),
    );
    // Its server process ends with the session, and what the local user runs himself is none of an operator's business.
    served.admin("DELETE", &format!("sessions/{session}"), "", "ended_session");
    let mut own = options(&served.workspace).open(Era::Legacy);
    let private = own.tool("sandboxed_shell", json!({"command": "echo private"}));
    assert!(private.to_string().contains("private"), "{private}");

    let found = wait_for("the end in the history", || {
        let found = served.admin(
            "GET",
            "history?status=failed&severity=high&since=1h&text=SCAN",
            "",
            "history",
        );
        found["operations"].get(0).cloned()
    });
    assert_eq!(json!([found["id"], found["principal"]]), json!([id, "the-agent"]));
    let all = served.admin("GET", "history?limit=1000", "", "history");
    assert_eq!(all["operations"].as_array().unwrap().len(), 1, "{all}");
    for nothing in [
        "history?tool=other",
        "history?client=other",
        "history?status=running",
    ] {
        let found = served.admin("GET", nothing, "", "history");
        assert_eq!(found["operations"], json!([]), "{nothing}");
    }
    let record = served.admin("GET", &format!("history/{id}"), "", "record");
    assert_eq!(
        json!([record["exit_code"], record["finding_counts"]["high"]]),
        json!([3, 1])
    );
    let output = served.admin(
        "GET",
        &format!("operations/{id}/output?from_line=2&lines=1"),
        "",
        "output",
    );
    assert_eq!(
        json!([output["text"], output["has_ended"]]),
        json!(["hole high CVE-2026-1 at port/80: old server; do update\n", true])
    );
    let findings = served.admin("GET", &format!("operations/{id}/findings"), "", "findings");
    assert_eq!(findings["findings"][0]["id"], "CVE-2026-1", "{findings}");
    let cancelled = served.admin("POST", &format!("operations/{id}/cancel"), "", "cancelled");
    assert_eq!(cancelled["stopped"], json!([]));
    let servers = served.admin("GET", "servers", "", "servers");
    assert_eq!(
        servers["servers"],
        json!([]),
        "only the local user's own server is left"
    );
    let audit = served.admin("GET", "audit?lines=5", "", "audit");
    assert_eq!(
        json!([audit["intact"], audit["lines"].as_array().unwrap().len()]),
        json!([true, 5])
    );

    for (path, status) in [
        ("history?status=over", 400),
        ("history?since=soon", 400),
        ("history?limit=many", 400),
        ("history/op_unknown", 404),
        ("operations/op_unknown/output", 404),
        (&format!("history/{id}/pdf"), 404),
    ] {
        let (found, answer) = served.ask("operator", "GET", &format!("/admin/v1/{path}"), "", "");
        assert_eq!(found, status, "{path}: {answer}");
        assert!(answer.contains(r#""message""#), "{path}: {answer}");
    }
    for path in ["history", "servers", "audit", &format!("history/{id}/sarif")] {
        assert_eq!(
            served.ask("agent", "GET", &format!("/admin/v1/{path}"), "", "").0,
            403,
            "{path}"
        );
    }

    let shown = |words: &[&str]| {
        let output = served.command(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (words, expected) in [
        (&["admin", "history", "--severity", "high"][..], id.as_str()),
        (&["admin", "show", &id], "exit_code          3"),
        (&["admin", "findings", &id], "CVE-2026-1"),
        (&["admin", "tail", &id], "old server"),
        (&["admin", "export", &id, "sarif"], "\"2.1.0\""),
        (&["admin", "export", &id, "text"], "begun\n"),
        (&["admin", "servers"], "SANDBOX"),
        (&["admin", "audit", "--lines", "3"], "the trail is intact"),
    ] {
        let said = shown(words);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    drop(own);
    assert!(shown(&["admin", "drain"]).contains("takes no new work"));
    assert!(served.server.process().wait().success());
}

const SCAN: &str = "echo begun; echo 'hole high CVE-2026-1 at port/80: old server; do update'; exit 3\n";

#[test]
fn an_operator_without_authentication_sees_and_stops_what_the_users_editors_run() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&options(&workspace).args(["--mode", "http", "--http-port", "0"]));
    let url = format!("http://{}", server.address());
    let ask = |words: &[&str]| {
        let output = run(&workspace, words, Path::new(&url));
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let mut editor = options(&workspace).open(Era::Legacy);
    let arguments = json!({"command": "echo mine; sleep 1000", "execution_mode": "asynchronous"});
    let started = editor.tool("sandboxed_shell", arguments);
    let id = started["structuredContent"]["operation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    wait_for("the operation of the editor", || {
        ask(&["admin", "history", "--status", "running", "--admin-url"])
            .contains(&id)
            .then_some(())
    });
    let until = json!({"operation_ids": [id], "until_line": "^mine$"});
    let printed = editor.tool("await", until);
    assert_eq!(printed["structuredContent"]["reason"], "line_found", "{printed}");
    let cancelled = ask(&["admin", "cancel", &id, "--reason", "enough", "--admin-url"]);
    assert_eq!(cancelled, format!("{id} is cancelled\n"));
    assert_eq!(ask(&["admin", "tail", &id, "--admin-url"]), "mine\n");
    let told = editor.tool("await", json!({"operation_ids": [id]})).to_string();
    assert!(told.contains("cancelled it: enough"), "{told}");
}
