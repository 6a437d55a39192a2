//! A client that speaks raw JSON-RPC, whatever carries it.
//!
//! SDK clients smooth over what a server does wrong, so tests speak the protocol themselves.

use std::{
    fmt,
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::TEST_TIMEOUT;

/// Protocol that the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: a handshake, then requests.
    Legacy,
    /// 2026-07-28: every request says who asks.
    Modern,
}

impl Era {
    pub const BOTH: [Self; 2] = [Self::Legacy, Self::Modern];
}

/// Carries messages to a server. Its messages go into the channel that the client reads.
pub(crate) trait Wire: fmt::Debug + Send {
    fn send(&mut self, message: &Value);

    /// Diagnostics of the server, from standard error.
    fn complaints(&self) -> String;
}

/// One client of one server.
#[derive(Debug)]
pub struct Client {
    wire: Box<dyn Wire>,
    messages: mpsc::Receiver<Value>,
    /// Messages that came while another was waited for, oldest first.
    passed_over: Vec<Value>,
    next_id: i64,
    era: Era,
}

impl Client {
    pub(crate) fn new(wire: impl Wire + 'static, messages: mpsc::Receiver<Value>) -> Self {
        Self {
            wire: Box::new(wire),
            messages,
            passed_over: Vec::new(),
            next_id: 1,
            era: Era::Modern,
        }
    }

    /// Opens the connection as a client of that era does.
    #[track_caller]
    pub fn open(&mut self, era: Era) -> Value {
        self.era = era;
        match era {
            Era::Modern => self.call("server/discover", json!({})),
            Era::Legacy => self.initialize(json!({})),
        }
    }

    /// The handshake of the legacy era, by a client with these capabilities.
    #[track_caller]
    pub fn initialize(&mut self, capabilities: Value) -> Value {
        self.era = Era::Legacy;
        let answer = self.call(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.notify("notifications/initialized", json!({}));
        answer
    }

    /// The server's diagnostics so far.
    pub fn complaints(&self) -> String {
        self.wire.complaints()
    }

    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.wire.send(message);
    }

    #[track_caller]
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and gives its id. Client data in `params` overrides the default.
    #[track_caller]
    pub fn request(&mut self, method: &str, mut params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == Era::Modern {
            let meta = &mut params["_meta"];
            for (name, value) in [
                ("protocolVersion", json!("2026-07-28")),
                ("clientCapabilities", json!({})),
                ("clientInfo", json!({"name": "test", "version": "1"})),
            ] {
                let given = &mut meta[format!("io.modelcontextprotocol/{name}")];
                if given.is_null() {
                    *given = value;
                }
            }
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and waits for its answer, the whole message.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a tool and gives the result; panics on a protocol error.
    #[track_caller]
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let mut answer = self.call("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{name} was refused: {answer}");
        answer["result"].take()
    }

    /// The names of the tools, in the order they are listed.
    #[track_caller]
    pub fn tool_names(&mut self) -> Vec<String> {
        let answer = self.call("tools/list", json!({}));
        let tools = answer["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("no list of tools: {answer}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("tools have names").to_owned())
            .collect()
    }

    /// The answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        self.expect(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// The answer to a request, if it comes within `timeout`.
    pub fn answer_within(&mut self, id: i64, timeout: Duration) -> Option<Value> {
        let wanted = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(place) = self.passed_over.iter().position(wanted) {
            return Some(self.passed_over.remove(place));
        }
        let deadline = Instant::now() + timeout;
        while let Ok(message) = self
            .messages
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if wanted(&message) {
                return Some(message);
            }
            self.passed_over.push(message);
        }
        None
    }

    /// The next notification of that kind.
    #[track_caller]
    pub fn notification(&mut self, method: &str) -> Value {
        self.expect(method, |message| message["method"] == method)
    }

    /// The first message, already here or still to come, that `wanted` accepts. The others are kept.
    #[track_caller]
    pub fn expect(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.passed_over.iter().position(&wanted) {
            return self.passed_over.remove(place);
        }
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            match self
                .messages
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.passed_over.push(message),
                Err(reason) => panic!(
                    "{what} never came ({reason}); other messages: {:#?}; stderr: {}",
                    self.passed_over,
                    self.complaints()
                ),
            }
        }
    }

    /// Every message that has come and was not asked for, including those that come within `pause`.
    pub fn others(&mut self, pause: Duration) -> Vec<Value> {
        while let Ok(message) = self.messages.recv_timeout(pause) {
            self.passed_over.push(message);
        }
        std::mem::take(&mut self.passed_over)
    }

    /// Every message that was not asked for, up to the answer to a request that is made now: what the server had to say
    /// by now has come.
    pub fn others_by_now(&mut self) -> Vec<Value> {
        self.tool_names();
        self.others(Duration::ZERO)
    }

    /// Stops reading: the pipe is closed when the next message has come.
    pub fn close_output(&mut self) {
        self.messages = mpsc::channel().1;
    }
}
