//! The admin API and `ahma_mcp admin`, against a real server: who may use it, what it tells, what it stops.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Output,
};

use serde_json::{Value, json};
use test_support::{HttpServer, Workspace, wait_for};

use crate::session::options;

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
        let mut connection = TcpStream::connect(address).unwrap();
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
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "editor", "version": "7"}}});
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
                operation["session"],
                operation["tool"]
            ]),
            json!([id, "the-agent", session, "sandboxed_shell"]),
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
    // By the file alone.
    let tokens = served.workspace.home().join("tokens.json");
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
    let operations = shown(&["admin", "operations", "--status", "running"]);
    assert!(
        operations.contains(&id) && operations.contains("the-agent"),
        "{operations}"
    );
    let json: Value = serde_json::from_str(&shown(&["admin", "operations", "--format", "json"])).unwrap();
    assert_eq!(json["operations"][0]["id"], id);
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
    assert!(shown(&["admin", "drain"]).contains("takes no new work"));
    assert!(served.server.process().wait().success());
}
