//! A server under test that listens, and its clients over every HTTP transport.
//!
//! HTTP/1.0 on purpose: an answer is all that comes until the connection closes, so nothing of a client library is
//! between the test and the server.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    path::Path,
    sync::mpsc,
};

use serde_json::{Value, json};

use crate::{Client, Era, Server, ServerOptions, TEST_TIMEOUT, client::Wire, wait_for};

/// A process that serves MCP over HTTP on a port of its own choice.
#[derive(Debug)]
pub struct HttpServer {
    process: Server,
    address: String,
}

/// Roots that a client offers before its session starts.
#[derive(Debug, Clone, Copy)]
pub enum Roots<'a> {
    /// It cannot be asked for a directory.
    None,
    /// Asked, it names this one.
    One(&'a Path),
}

impl HttpServer {
    /// Starts the server, which must have been told to listen on port 0, and waits until it does.
    #[track_caller]
    pub fn start(options: &ServerOptions) -> Self {
        let mut process = options.start();
        let address = wait_for("the server to listen", || {
            let said = process.complaints();
            assert!(process.is_running(), "the server ended: {said}");
            let (_, after) = said.split_once("listening on http://")?;
            Some(after.split_once("/mcp")?.0.to_owned())
        });
        Self { process, address }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A connection on which no answer is waited for without an end.
    pub fn connect(&self) -> TcpStream {
        let connection = TcpStream::connect(&self.address).expect("the server listens");
        connection
            .set_read_timeout(Some(2 * TEST_TIMEOUT))
            .expect("a timeout");
        connection
    }

    /// Status and body at a path.
    #[track_caller]
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut answer = String::new();
        let mut connection = exchange(&self.address, "GET", path, "", "");
        connection.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.unwrap_or_else(|| panic!("{answer}")), body.to_owned())
    }

    /// The process that listens.
    pub fn process(&mut self) -> &mut Server {
        &mut self.process
    }

    /// A client with a session over Streamable HTTP, which ends with the value.
    #[track_caller]
    pub fn session(&self, roots: Roots<'_>) -> Client {
        let mut client = self.client(Credential::None);
        open_session(&mut client, roots);
        client
    }

    /// The same for the bearer of a token.
    #[track_caller]
    pub fn session_as(&self, token: &str, roots: Roots<'_>) -> Client {
        let mut client = self.client(Credential::Token(token.to_owned()));
        open_session(&mut client, roots);
        client
    }

    /// The same without the standing stream, which would keep the session.
    #[track_caller]
    pub fn unheard_session(&self) -> Client {
        let (sender, messages) = mpsc::channel();
        let wire = Streamable {
            address: self.address.clone(),
            credential: Credential::None,
            session: None,
            sender,
            listens: false,
        };
        let mut client = Client::new(wire, messages);
        open_session(&mut client, Roots::None);
        client
    }

    /// A client of the modern era, without a session.
    pub fn sessionless(&self) -> Client {
        sessionless_at(&self.address)
    }

    /// The same for the bearer of a token.
    pub fn sessionless_as(&self, token: &str) -> Client {
        let mut client = self.client(Credential::Token(token.to_owned()));
        client.open(Era::Modern);
        client
    }

    fn client(&self, credential: Credential) -> Client {
        client_at(&self.address, credential)
    }

    /// A client over HTTP+SSE as it was in 2024. Its stream is lost with the value.
    #[track_caller]
    pub fn sse(&self, roots: Roots<'_>) -> Client {
        let (sender, messages) = mpsc::channel();
        let connection = exchange(
            &self.address,
            "GET",
            "/mcp/sse",
            "accept: text/event-stream\r\n",
            "",
        );
        let stream = connection.try_clone().expect("a descriptor");
        let mut events = Events::new(connection);
        let (name, endpoint) = events.next().expect("the first event");
        assert_eq!(name, "endpoint", "{endpoint}");
        std::thread::spawn(move || events.pass_on(&sender));
        let address = self.address.clone();
        let wire = LegacySse {
            address,
            endpoint,
            stream,
        };
        let mut client = Client::new(wire, messages);
        open_session(&mut client, roots);
        client
    }
}

/// A client of the modern era of whatever serves at this host and port.
pub fn sessionless_at(address: &str) -> Client {
    let mut client = client_at(address, Credential::None);
    client.open(Era::Modern);
    client
}

/// A client with a session at whatever serves at this host and port.
#[track_caller]
pub fn session_at(address: &str) -> Client {
    let mut client = client_at(address, Credential::None);
    open_session(&mut client, Roots::None);
    client
}

/// A client over Streamable HTTP that has sent nothing.
fn client_at(address: &str, credential: Credential) -> Client {
    let (sender, messages) = mpsc::channel();
    let wire = Streamable {
        address: address.to_owned(),
        credential,
        session: None,
        sender,
        listens: true,
    };
    Client::new(wire, messages)
}

/// The handshake, and the answer to the question about directories.
#[track_caller]
fn open_session(client: &mut Client, roots: Roots<'_>) {
    match roots {
        Roots::None => {
            client.initialize(json!({}));
        }
        Roots::One(directory) => {
            client.initialize(json!({"roots": {}}));
            let question = client.expect("the question about roots", |message| {
                message["method"] == "roots/list"
            });
            let roots = json!({"roots": [{"uri": format!("file://{}", directory.display())}]});
            client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": roots}));
        }
    }
}

/// The credential a client shows with every request.
#[derive(Debug)]
enum Credential {
    None,
    Token(String),
}

impl Credential {
    fn header(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Token(token) => format!("authorization: Bearer {token}\r\n"),
        }
    }
}

/// Streamable HTTP: every message is a request of its own, and a session has a stream of its own.
#[derive(Debug)]
struct Streamable {
    address: String,
    credential: Credential,
    session: Option<String>,
    sender: mpsc::Sender<Value>,
    /// The standing stream is opened with the session.
    listens: bool,
}

impl Streamable {
    fn headers(&self, message: &Value) -> String {
        let mut headers = self.credential.header() + "accept: application/json, text/event-stream\r\n";
        if let Some(session) = &self.session {
            headers += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
        }
        let params = &message["params"];
        if let Some(version) = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str() {
            let method = message["method"].as_str().unwrap_or_default();
            headers += &format!("mcp-protocol-version: {version}\r\nmcp-method: {method}\r\n");
            let name = params["name"].as_str().or_else(|| params["uri"].as_str());
            if let Some(name) = name.or_else(|| params["taskId"].as_str()) {
                headers += &format!("mcp-name: {name}\r\n");
            }
        }
        headers
    }

    /// The stream of the session's own messages.
    fn listen(&self, session: &str) {
        let credential = self.credential.header();
        let headers = format!("{credential}accept: text/event-stream\r\nmcp-session-id: {session}\r\n");
        let mut events = Events::new(exchange(&self.address, "GET", "/mcp", &headers, ""));
        let sender = self.sender.clone();
        std::thread::spawn(move || events.pass_on(&sender));
    }
}

impl Wire for Streamable {
    fn send(&mut self, message: &Value) {
        let connection = exchange(
            &self.address,
            "POST",
            "/mcp",
            &self.headers(message),
            &message.to_string(),
        );
        let sender = self.sender.clone();
        match (message.get("id"), message["method"].as_str()) {
            (Some(_), Some("initialize")) => {
                let mut events = Events::new(connection);
                self.session = events.header("mcp-session-id");
                assert!(self.session.is_some(), "no session: {}", events.head);
                events.pass_on(&sender);
            }
            // Even the head of an answer may take its time.
            (Some(_), Some(_)) => {
                std::thread::spawn(move || Events::new(connection).pass_on(&sender));
            }
            (_, method) => {
                let head = Events::new(connection).head;
                assert!(head.contains(" 202 "), "{message}: {head}");
                if let (Some("notifications/initialized"), Some(session)) = (method, &self.session)
                    && self.listens
                {
                    self.listen(session);
                }
            }
        }
    }

    fn complaints(&self) -> String {
        format!("a client of {}", self.address)
    }
}

impl Drop for Streamable {
    fn drop(&mut self) {
        let Some(session) = &self.session else { return };
        // The server may have been killed by then, and a panic in here would hide the one that matters.
        if let Ok(mut connection) = TcpStream::connect(&self.address) {
            let credential = self.credential.header();
            let headers = format!(
                "{credential}host: {}\r\nmcp-session-id: {session}\r\n",
                self.address
            );
            let _ = write!(connection, "DELETE /mcp HTTP/1.0\r\n{headers}\r\n");
            let _ = connection.set_read_timeout(Some(TEST_TIMEOUT));
            let _ = connection.read_to_end(&mut Vec::new());
        }
    }
}

/// HTTP+SSE: one stream down, and posts up.
#[derive(Debug)]
struct LegacySse {
    address: String,
    endpoint: String,
    /// Messages from the server, also held by the thread that reads it.
    stream: TcpStream,
}

impl Drop for LegacySse {
    fn drop(&mut self) {
        // The server may have closed it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Wire for LegacySse {
    fn send(&mut self, message: &Value) {
        let connection = exchange(&self.address, "POST", &self.endpoint, "", &message.to_string());
        let head = Events::new(connection).head;
        assert!(head.contains(" 202 "), "{message}: {head}");
    }

    fn complaints(&self) -> String {
        format!("a client of {}{}", self.address, self.endpoint)
    }
}

#[track_caller]
fn exchange(address: &str, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).expect("the server listens");
    connection
        .set_read_timeout(Some(TEST_TIMEOUT * 2))
        .expect("a valid time");
    write!(
        connection,
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len(),
    )
    .expect("the server reads");
    connection
}

/// An answer: its head, and the messages that follow, as events or as one document.
#[derive(Debug)]
struct Events {
    head: String,
    body: BufReader<TcpStream>,
}

impl Events {
    #[track_caller]
    fn new(connection: TcpStream) -> Self {
        let mut body = BufReader::new(connection);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let length = body.read_line(&mut head).expect("an answer");
            assert_ne!(length, 0, "the connection closed after: {head}");
        }
        Self { head, body }
    }

    fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    /// Name and data of the next event.
    fn next(&mut self) -> Option<(String, String)> {
        let (mut name, mut data) = ("message".to_owned(), String::new());
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(':') {
                Some(("event", value)) => value.trim().clone_into(&mut name),
                Some(("data", value)) => data += value.trim_start(),
                None if !data.is_empty() => return Some((name, data)),
                _ => {}
            }
        }
    }

    /// Gives every message to the client until the connection closes.
    fn pass_on(&mut self, sender: &mpsc::Sender<Value>) {
        if self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/json"))
        {
            let mut document = String::new();
            if self.body.read_to_string(&mut document).is_ok()
                && let Ok(message) = serde_json::from_str(&document)
            {
                let _ = sender.send(message);
            }
            return;
        }
        while let Some((_, data)) = self.next() {
            if let Ok(message) = serde_json::from_str(&data)
                && sender.send(message).is_err()
            {
                return;
            }
        }
    }
}
