//! A bridge on a free port in front of `fake_mcp`, and a client for it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use ahma_http_bridge::{BridgeSettings, ChildCommand, ChildFactory, FixedCommand, Isolation, Spawn, serve};
use reqwest::{Response, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = test_support::PATIENCE;

#[derive(Debug)]
struct NamingClients(FixedCommand);

impl ChildFactory for NamingClients {
    fn command(&self, spawn: &Spawn) -> ChildCommand {
        ChildCommand {
            keeps_clients_apart: true,
            ..self.0.command(spawn)
        }
    }
}

/// A running bridge. Dropping it stops the bridge in the background; `stop` waits.
pub(crate) struct Bridge {
    pub(crate) address: SocketAddr,
    pub(crate) scope: TempDir,
    shutdown: CancellationToken,
    served: tokio::task::JoinHandle<Result<(), ahma_http_bridge::ServeError>>,
}

impl Bridge {
    pub(crate) async fn shared() -> Self {
        Self::start(&[], |_| {}).await
    }

    pub(crate) async fn isolated() -> Self {
        Self::start(&[], |settings| settings.isolation = Isolation::PerSession).await
    }

    /// Starts a bridge with one child that is told which client a request comes from.
    pub(crate) async fn shared_naming_clients() -> Self {
        Self::with_factory(&[], |_| {}, |factory| Arc::new(NamingClients(factory))).await
    }

    /// Starts a bridge whose children get these flags.
    pub(crate) async fn start(child_flags: &[&str], adjust: impl FnOnce(&mut BridgeSettings)) -> Self {
        Self::with_factory(child_flags, adjust, |factory| Arc::new(factory)).await
    }

    async fn with_factory(
        child_flags: &[&str],
        adjust: impl FnOnce(&mut BridgeSettings),
        wrap: impl FnOnce(FixedCommand) -> Arc<dyn ChildFactory>,
    ) -> Self {
        let scope = tempfile::tempdir().unwrap();
        let root = scope.path().canonicalize().unwrap();
        let mut settings = BridgeSettings::new(root.clone());
        settings.times.stop_grace = Duration::from_millis(300);
        settings.metrics = true;
        adjust(&mut settings);
        let factory = FixedCommand {
            program: fake_mcp().into(),
            args: child_flags.iter().map(Into::into).collect(),
            default_scope: root,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve(listener, settings, wrap(factory), shutdown.clone(), |_| {}));
        Self {
            address,
            scope,
            shutdown,
            served,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            url: self.url("/mcp"),
            session: None,
            http: http_client(),
        }
    }

    /// A client with a session.
    pub(crate) async fn session(&self) -> Client {
        let mut client = self.client();
        client.initialize(json!({})).await;
        client
    }

    /// Waits until this many requests are with the children.
    pub(crate) async fn wait_for_open_calls(&self, count: usize) {
        self.wait_for_gauge("ahma_open_calls", |found| found == count)
            .await;
    }

    /// Waits until no more connections are open, this question's own among them.
    pub(crate) async fn wait_for_connections_down_to(&self, count: usize) {
        self.wait_for_gauge("ahma_connections", |found| found <= count)
            .await;
    }

    /// Waits until this many sessions are open.
    pub(crate) async fn wait_for_sessions(&self, count: usize) {
        self.wait_for_gauge("ahma_sessions", |found| found == count).await;
    }

    async fn wait_for_gauge(&self, name: &str, is_wanted: impl Fn(usize) -> bool) {
        let http = http_client();
        eventually(name, async || {
            let metrics = http.get(self.url("/metrics")).send().await.unwrap();
            let text = metrics.text().await.unwrap();
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find_map(|(found, value)| (found == name).then_some(value));
            is_wanted(found.unwrap().parse().unwrap())
        })
        .await;
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, &mut self.served)
            .await
            .expect("the bridge stops")
            .unwrap()
            .unwrap();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) url: String,
    pub(crate) session: Option<String>,
    pub(crate) http: reqwest::Client,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const BOTH: &str = "application/json, text/event-stream";

impl Client {
    pub(crate) async fn post(&self, accept: &str, message: &Value) -> Response {
        let mut request = self
            .http
            .post(&self.url)
            .header("accept", accept)
            .header("content-type", JSON)
            .body(message.to_string());
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request.send().await.unwrap()
    }

    /// Sends `initialize` and `notifications/initialized`; gives back the result.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        self.initialize_as("2025-11-25", capabilities).await
    }

    pub(crate) async fn initialize_as(&mut self, version: &str, capabilities: Value) -> Value {
        let response = self.post(JSON, &initialize(version, capabilities)).await;
        assert_eq!(response.status(), StatusCode::OK);
        self.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        let body: Value = response.json().await.unwrap();
        let told = self
            .post(
                JSON,
                &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            )
            .await;
        assert_eq!(told.status(), StatusCode::ACCEPTED);
        body["result"].clone()
    }

    /// Calls a tool and gives back status and whole answer.
    pub(crate) async fn try_call(&self, id: Value, tool: &str, arguments: Value) -> (StatusCode, Value) {
        let response = self.post(JSON, &tool_call(id, tool, arguments)).await;
        (response.status(), response.json().await.unwrap())
    }

    /// Calls a tool that must succeed, and gives back its text.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        let (client, tool) = (self.clone(), tool.to_owned());
        async move {
            let (status, body) = client.try_call(json!(1), &tool, arguments).await;
            assert_eq!(status, StatusCode::OK, "{tool} at {caller}: {body}");
            body["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_else(|| panic!("{body}"))
                .to_owned()
        }
    }

    pub(crate) async fn delete(&self) -> StatusCode {
        let mut request = self.http.delete(&self.url);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request.send().await.unwrap().status()
    }

    /// Opens the standing stream, or takes one up after this event.
    pub(crate) async fn events(&self, last_event_id: Option<&str>) -> Events {
        let mut request = self.http.get(&self.url).header("accept", "text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Events::of(response)
    }

    pub(crate) async fn who(&self) -> Who {
        let text = self.call("who", json!({})).await;
        let value: Value = serde_json::from_str(&text).unwrap();
        Who {
            pid: i32::try_from(value["pid"].as_i64().unwrap()).unwrap(),
            scope: value["scope"].as_str().unwrap().into(),
        }
    }
}

/// What a child says about itself.
#[derive(Debug)]
pub(crate) struct Who {
    pub(crate) pid: i32,
    pub(crate) scope: PathBuf,
}

pub(crate) fn initialize(version: &str, capabilities: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    }})
}

pub(crate) fn tool_call(id: Value, tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

pub(crate) fn with_token(mut message: Value, token: Value) -> Value {
    message["params"]["_meta"]["progressToken"] = token;
    message
}

/// The events of a response, as they come.
pub(crate) struct Events {
    response: Response,
    buffer: String,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            buffer: String::new(),
        }
    }

    /// The next event with data; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.next_where(|event| !event.data.is_empty()).await
    }

    /// The id of the next event, with data or without.
    pub(crate) async fn next_id(&mut self) -> String {
        let event = self.next_where(|event| event.id.is_some()).await;
        event.and_then(|event| event.id).expect("an event")
    }

    async fn next_where(&mut self, wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.buffer.split_once("\n\n") {
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", value)) => event.id = Some(value.to_owned()),
                        Some(("event", value)) => event.name = Some(value.to_owned()),
                        Some(("data", value)) => event.data.push_str(value),
                        _ => {}
                    }
                }
                self.buffer = rest.to_owned();
                if wanted(&event) {
                    return Some(event);
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk())
                .await
                .expect("an event or the end");
            self.buffer.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    pub(crate) async fn next_json(&mut self) -> Value {
        self.next().await.expect("an event").json()
    }

    /// Everything up to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event.json());
        }
        all
    }
}

pub(crate) fn http_client() -> reqwest::Client {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(64)
        .build()
        .unwrap()
}

/// The real binary as a process of its own, for what can only be seen from outside.
pub(crate) struct BridgeProcess {
    process: std::process::Child,
    pub(crate) url: String,
    stderr: std::thread::JoinHandle<String>,
}

impl BridgeProcess {
    pub(crate) fn start(env: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        command.envs(env.iter().copied());
        Self::start_command(command, flags, read_all)
    }

    /// One whose standard error stays open, and is not read once it listens.
    pub(crate) fn start_unread(flags: &[&str]) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(command, flags, |mut stderr, tx| {
            let mut lines = stderr.by_ref().lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| tx.send(line).is_ok()) {}
            std::mem::forget(stderr);
            String::new()
        })
    }

    /// One that may open no more files than `ulimit` says, as in `-Sn 100`.
    pub(crate) fn start_limited(ulimit: &str, flags: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("ulimit {ulimit}; exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(shell, flags, read_all)
    }

    /// One that ends when its terminal goes away, also where the tests were told to live on.
    pub(crate) fn start_attached() -> Self {
        let mut command = Command::new("env");
        command
            .arg("--default-signal=HUP")
            .arg(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(command, &[], read_all)
    }

    /// One that lives on when its terminal goes away.
    pub(crate) fn start_detached() -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_ahma_http_bridge"));
        Self::start_command(shell, &[], read_all)
    }

    /// What the kernel says of it.
    pub(crate) fn status(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap()
    }

    fn start_command(
        mut command: Command,
        flags: &[&str],
        read: impl FnOnce(BufReader<ChildStderr>, mpsc::Sender<String>) -> String + Send + 'static,
    ) -> Self {
        let mut process = command
            .args(["--http-port", "0"])
            .args(flags)
            .arg("--")
            .arg(fake_mcp())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (tx, lines) = mpsc::channel();
        let stderr = std::thread::spawn(move || read(stderr, tx));
        let url = loop {
            let line = lines
                .recv_timeout(PATIENCE)
                .expect("the bridge says where it listens");
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.to_owned();
            }
        };
        Self { process, url, stderr }
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            url: self.url.clone(),
            session: None,
            http: http_client(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.url
            .trim_start_matches("http://")
            .trim_end_matches("/mcp")
            .parse()
            .unwrap()
    }

    /// Its resident memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.process.id())).unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Ends it in a way it cannot notice.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends it and gives everything it wrote to standard error.
    pub(crate) fn stop(self) -> String {
        self.stop_by(Signal::TERM)
    }

    pub(crate) fn stop_by(mut self, signal: Signal) -> String {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
        let ended = test_support::wait_for("the end of the bridge", || self.process.try_wait().unwrap());
        assert!(ended.success(), "{ended}");
        let mut stdout = String::new();
        self.process
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        assert_eq!(stdout, "", "standard output is for data");
        self.stderr.join().unwrap()
    }
}

/// Everything there is to read, each line told at once.
fn read_all(stderr: BufReader<ChildStderr>, tx: mpsc::Sender<String>) -> String {
    let lines = stderr.lines().map_while(Result::ok);
    let lines = lines.inspect(|line| drop(tx.send(line.clone())));
    lines.collect::<Vec<_>>().join("\n")
}

/// The fake server, built if the test was started alone.
pub(crate) fn fake_mcp() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let program = test
            .parent()
            .and_then(Path::parent)
            .unwrap()
            .join("examples/fake_mcp");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fake_mcp.rs");
        let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
        // Cargo would say the same, but may have to wait for another cargo first.
        if changed(&program).is_some_and(|built| changed(&source).is_none_or(|source| source <= built)) {
            return program;
        }
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                env!("CARGO_PKG_NAME"),
                "--example",
                "fake_mcp",
            ])
            .status();
        assert!(
            built.is_ok_and(|status| status.success()) || program.exists(),
            "fake_mcp cannot be built"
        );
        program
    })
}

pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie is not alive: its parent has not looked yet.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits for something that must happen, without blocking the runtime.
pub(crate) async fn eventually(what: &str, mut happened: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened().await {
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
