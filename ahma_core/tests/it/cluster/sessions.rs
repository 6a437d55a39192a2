//! Sessions of the older protocol, which go on at any front end.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::{HttpServer, wait_for};

use super::pool::{Cluster, accepted};
use crate::session::options;

const VERSION: &str = "2025-11-25";

/// A front end that knows two clients.
fn front_end(cluster: &Cluster, flags: &[&str]) -> HttpServer {
    let options = cluster
        .options()
        .args(["--mode", "http", "--http-port", "0", "--tokens-file"])
        .args([cluster.workspace.home().join("tokens.json")])
        .args(flags);
    HttpServer::start(&options)
}

fn token(cluster: &Cluster, name: &str) -> String {
    let command = options(&cluster.workspace)
        .args(["token", "new", "--name", name, "--file"])
        .args([cluster.workspace.home().join("tokens.json")]);
    let issued = command.command().output().unwrap();
    assert!(issued.status.success(), "{issued:?}");
    String::from_utf8(issued.stdout).unwrap().trim().to_owned()
}

/// A client that goes to whichever front end it is sent to.
struct Roamer {
    token: String,
    session: String,
}

struct Answer {
    status: u16,
    head: String,
    body: Value,
}

fn connection(at: &HttpServer, token: &str, method: &str, headers: &str, body: &str) -> TcpStream {
    let address = at.address();
    let mut connection = at.connect();
    write!(
        connection,
        "{method} /mcp HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: {VERSION}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    connection
}

fn exchange(at: &HttpServer, token: &str, method: &str, headers: &str, body: &Value) -> Answer {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let headers = format!("accept: application/json\r\n{headers}");
    let mut text = String::new();
    connection(at, token, method, &headers, &body)
        .read_to_string(&mut text)
        .unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: serde_json::from_str(body).unwrap_or_default(),
    }
}

impl Roamer {
    fn open(at: &HttpServer, token: &str, capabilities: Value) -> Self {
        let params = json!({"protocolVersion": VERSION, "capabilities": capabilities,
                            "clientInfo": {"name": "roamer", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let answer = exchange(at, token, "POST", "", &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let (_, after) = answer.head.split_once("mcp-session-id: ").unwrap();
        let client = Self {
            token: token.to_owned(),
            session: after.lines().next().unwrap().trim().to_owned(),
        };
        client.say(
            at,
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        );
        client
    }

    fn named(&self) -> String {
        format!("mcp-session-id: {}\r\n", self.session)
    }

    fn send(&self, at: &HttpServer, method: &str, body: &Value) -> Answer {
        exchange(at, &self.token, method, &self.named(), body)
    }

    fn say(&self, at: &HttpServer, message: Value) {
        assert_eq!(self.send(at, "POST", &message).status, 202);
    }

    fn ask(&self, at: &HttpServer, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let answer = self.send(at, "POST", &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["result"].clone()
    }

    fn tool(&self, at: &HttpServer, name: &str, arguments: Value) -> Value {
        self.ask(at, "tools/call", json!({"name": name, "arguments": arguments}))
    }

    fn status_of_ping(&self, at: &HttpServer) -> u16 {
        let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
        self.send(at, "POST", &ping).status
    }

    /// The standing stream.
    fn listen(&self, at: &HttpServer, headers: &str) -> BufReader<TcpStream> {
        let headers = format!("accept: text/event-stream\r\n{}{headers}", self.named());
        BufReader::new(connection(at, &self.token, "GET", &headers, ""))
    }
}

/// The first line of a stream that begins so.
fn line(stream: &mut BufReader<TcpStream>, beginning: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended");
        if let Some(rest) = line.strip_prefix(beginning) {
            return rest.trim().to_owned();
        }
    }
}

fn start(client: &Roamer, at: &HttpServer, command: &str) -> String {
    let arguments = json!({"command": command, "execution_mode": "asynchronous"});
    accepted(|| client.tool(at, "sandboxed_shell", arguments.clone()))
}

#[test]
fn a_session_goes_on_at_another_front_end_when_its_own_is_killed() {
    let Some(cluster) = Cluster::start() else { return };
    let (anna, bert) = (token(&cluster, "anna"), token(&cluster, "bert"));
    let _worker = cluster.worker();
    let mut one = front_end(&cluster, &[]);
    let two = front_end(&cluster, &[]);
    let client = Roamer::open(&one, &anna, json!({}));
    let id = start(&client, &one, "until [ -e go ]; do sleep 0.1; done; echo end");
    let uri = format!("ahma://operations/{id}");
    client.ask(&one, "resources/subscribe", json!({"uri": uri}));
    client.ask(&one, "logging/setLevel", json!({"level": "info"}));
    let last_event = line(&mut client.listen(&one, ""), "id: ");

    one.process().signal(Signal::KILL);
    one.process().wait();
    let mut stream = client.listen(&two, &format!("last-event-id: {last_event}\r\n"));
    let update: Value = serde_json::from_str(&line(&mut stream, "data: ")).unwrap();
    assert_eq!(update["params"]["uri"], uri.as_str(), "{update}");
    let stranger = Roamer {
        token: bert,
        session: client.session.clone(),
    };
    assert_eq!(stranger.status_of_ping(&two), 404);
    assert_eq!(stranger.send(&two, "DELETE", &Value::Null).status, 404);

    // What it started is there, and what it does from now on is heard at the level it asked for.
    fs::write(cluster.workspace.scope().join("go"), "").unwrap();
    let awaited = client.tool(
        &two,
        "await",
        json!({"operation_ids": [id], "timeout_seconds": 50}),
    );
    let report = &awaited["structuredContent"]["operations"][0];
    assert_eq!(
        (&report["status"], &report["output"]),
        (&json!("completed"), &json!("end\n"))
    );
    client.tool(&two, "sandboxed_shell", json!({"command": "echo heard"}));
    wait_for("a log message", || {
        line(&mut stream, "data: ").contains("heard").then_some(())
    });
    assert_eq!(client.send(&two, "DELETE", &Value::Null).status, 204);
    assert_eq!(client.status_of_ping(&two), 404);
}

#[test]
fn a_session_that_is_ended_at_one_front_end_is_gone_at_all() {
    let Some(cluster) = Cluster::start() else { return };
    let anna = token(&cluster, "anna");
    let fronts = [front_end(&cluster, &[]), front_end(&cluster, &[])];
    let [one, two] = &fronts;
    let client = Roamer::open(one, &anna, json!({}));
    assert_eq!(
        [client.status_of_ping(one), client.status_of_ping(two)],
        [200, 200]
    );
    let mut stream = client.listen(one, "");
    line(&mut stream, "id: ");
    assert_eq!(client.send(two, "DELETE", &Value::Null).status, 204);
    assert_eq!(
        [client.status_of_ping(one), client.status_of_ping(two)],
        [404, 404]
    );
    assert_eq!(client.send(one, "DELETE", &Value::Null).status, 404);
    // Who only listens hears of it, too.
    stream.read_to_end(&mut Vec::new()).unwrap();
    let late = front_end(&cluster, &[]);
    assert_eq!(client.status_of_ping(&late), 404);
}

#[test]
fn a_session_with_a_server_process_of_its_own_keeps_its_directory() {
    let Some(cluster) = Cluster::start() else { return };
    let anna = token(&cluster, "anna");
    let _worker = cluster.worker();
    let mut one = front_end(&cluster, &["--session-isolation"]);
    let two = front_end(&cluster, &["--session-isolation"]);
    let client = Roamer::open(&one, &anna, json!({"roots": {}}));
    let mut stream = client.listen(&one, "");
    let question: Value = wait_for("the question for roots", || {
        serde_json::from_str(&line(&mut stream, "data: ")).ok()
    });
    assert_eq!(question["method"], "roots/list", "{question}");
    let scope = cluster.workspace.scope();
    let roots = json!({"roots": [{"uri": format!("file://{}", scope.display())}]});
    client.say(
        &one,
        json!({"jsonrpc": "2.0", "id": question["id"], "result": roots}),
    );
    let expected = format!("{}\n", scope.display());
    let pwd = |at: &HttpServer| {
        let arguments = json!({"command": "pwd", "execution_mode": "synchronous"});
        let result = client.tool(at, "sandboxed_shell", arguments);
        assert_eq!(
            result["structuredContent"]["output"],
            expected.as_str(),
            "{result}"
        );
    };
    pwd(&one);
    one.process().signal(Signal::KILL);
    one.process().wait();
    pwd(&two);
}

#[test]
fn a_session_survives_an_outage_of_the_cluster() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let anna = token(&cluster, "anna");
    let fronts = [front_end(&cluster, &[]), front_end(&cluster, &[])];
    let [one, two] = &fronts;
    let client = Roamer::open(one, &anna, json!({}));
    cluster.nats.kill();
    // Known here, and not to be found there; the client is not told that it is gone.
    assert_eq!(client.status_of_ping(one), 200);
    assert_eq!(client.status_of_ping(two), 503);
    cluster.nats.restart();
    wait_for("the session at the other front end", || {
        (client.status_of_ping(two) == 200).then_some(())
    });
}
