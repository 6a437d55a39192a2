//! Tools of other MCP servers, offered with our own as `{server}_{tool}`.
//!
//! Calls, progress, cancellation and results pass through; nothing is sent twice. A server that is not there only lacks
//! its own tools: no request waits for it, and `status` says why. A local tool keeps its name whatever a server calls its
//! own, and what is mounted here is never offered to a client that mounts it again, or two servers could mount each
//! other without end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ahma_http_mcp_client::{
    CLIENT_NAME, LoginNews, RemoteError, RemoteServers, ServerState, Snapshot, mounted_name,
};
use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam,
        RequestMetaObject, Tool,
    },
    service::RequestContext,
};
use tokio::{sync::mpsc, time::Instant};

use super::{
    builtin::{Builtin, RemoteReport},
    error, log_messages, resources,
    server::Server,
    subscriptions::Change,
};
use crate::toolbox::Toolbox;

/// Time after the start during which the list of tools waits for servers; late ones change the list.
const LIST_TIMEOUT: Duration = Duration::from_millis(200);

/// Progress that waits to be written to the client; more than this is a burst that is not read anyway.
const PROGRESS_BUFFER: usize = 256;

/// The protocol's own metadata, which is about one connection and means nothing on another.
const PROTOCOL_META: &str = ahma_common::contract::PROTOCOL_META_PREFIX;
const PROGRESS_META: &str = "progressToken";
/// Metadata of the bridge, which concerns this server only.
const BRIDGE_META: &str = ahma_common::contract::OWN_PREFIX;

/// The remote servers, connected in the background.
#[derive(Debug)]
pub(crate) struct Remotes {
    servers: RemoteServers,
    /// Problems of the file that names them.
    problems: Vec<String>,
    started: Instant,
    offer: Mutex<Offer>,
}

/// Tools of the servers, as last reported.
#[derive(Debug, Default)]
struct Offer {
    tools_of: BTreeMap<String, Arc<[Tool]>>,
    /// By the name they are mounted under.
    mounted: BTreeMap<String, Mounted>,
    /// Counts the changes of what clients see.
    version: u64,
    /// Tools whose name another server's tool already has.
    clashes: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Mounted {
    server: String,
    /// The server's own name for it.
    tool: String,
    shown: Tool,
    /// Visible to clients: the server is there, or was lost a moment ago.
    is_listed: bool,
}

/// The tool that a call is passed on to.
#[derive(Debug)]
pub(super) struct RemoteTool {
    server: String,
    tool: String,
}

impl Remotes {
    /// `problems` are shown by `status`. Must be called inside a Tokio runtime.
    pub(crate) fn new(servers: RemoteServers, problems: Vec<String>) -> Self {
        Self {
            servers,
            problems,
            started: Instant::now(),
            offer: Mutex::default(),
        }
    }

    /// Ends all connections and the programs that were started for them.
    pub(crate) async fn shutdown(&self) {
        self.servers.shutdown().await;
    }

    /// The tools that `ctx`'s client is to see, in the order of their names.
    pub(super) async fn list(&self, toolbox: &Toolbox, ctx: &RequestContext<RoleServer>) -> Vec<Tool> {
        if ctx.client_info().is_some_and(|client| client.name == CLIENT_NAME) {
            return Vec::new();
        }
        let mut states = self.servers.states();
        let answered = states.wait_for(|states| !states.values().any(is_first_attempt));
        let _ = tokio::time::timeout_at(self.started + LIST_TIMEOUT, answered).await;
        self.take_in(&states.borrow().clone());
        let offer = self.offer.lock();
        let listed = offer.mounted.iter().filter(|(_, mounted)| mounted.is_listed);
        listed
            .filter(|(name, _)| !is_local(toolbox, name))
            .map(|(_, mounted)| mounted.shown.clone())
            .collect()
    }

    /// The remote tool of that name, if no local one has it.
    pub(super) fn find(&self, toolbox: &Toolbox, name: &str) -> Option<RemoteTool> {
        if is_local(toolbox, name) {
            return None;
        }
        let offer = self.offer.lock();
        if let Some(mounted) = offer.mounted.get(name) {
            return Some(RemoteTool {
                server: mounted.server.clone(),
                tool: mounted.tool.clone(),
            });
        }
        // A client may remember tools of a server that is still being connected. The call will wait for it, and the
        // server itself will say whether there is such a tool.
        let states = self.servers.states().borrow().clone();
        let unheard = states
            .keys()
            .filter(|server| !offer.tools_of.contains_key(*server));
        unheard.into_iter().find_map(|server| {
            let tool = name.strip_prefix(&mounted_name(server, ""))?;
            Some(RemoteTool {
                server: server.clone(),
                tool: tool.to_owned(),
            })
        })
    }

    /// Passes a call on, and everything that comes back.
    pub(super) async fn call(
        &self,
        target: RemoteTool,
        mut request: CallToolRequestParams,
        ctx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        request.name = target.tool.into();
        request.meta = Some(passed_on(&ctx.meta)).filter(|meta| !meta.0.0.is_empty());
        let token = ctx.meta.get_progress_token();
        let (tx, mut progress) = mpsc::channel::<ProgressNotificationParam>(PROGRESS_BUFFER);
        let tx = token.is_some().then_some(tx);
        let calling = self.servers.call(&target.server, request, tx, &ctx.ct);
        let reporting = async {
            while let Some(mut step) = progress.recv().await {
                if let Some(token) = &token {
                    step.progress_token = token.clone();
                    let _ = ctx.peer.notify_progress(step).await;
                }
            }
        };
        // With the answer the sender is gone, so the loop ends after the last progress and before our answer.
        let (answer, ()) = tokio::join!(calling, reporting);
        match answer {
            Ok(response @ CallToolResponse::Complete(_)) => Ok(response),
            Ok(_) => Ok(refusal(format!(
                "remote server `{}` asks for something that cannot be passed on: it wants more input, or to answer later",
                target.server
            ))),
            Err(RemoteError::Protocol(error)) => Err(error),
            Err(RemoteError::Cancelled) => Err(error::cancelled()),
            Err(error) => Ok(refusal(error.to_string())),
        }
    }

    /// The state of every server.
    pub(super) fn report(&self, toolbox: &Toolbox) -> Vec<RemoteReport> {
        let states = self.servers.states().borrow().clone();
        self.take_in(&states);
        let offer = self.offer.lock();
        let of_server = |name: &str| {
            let mut hidden = offer.clashes.get(name).cloned().unwrap_or_default();
            let mounted = offer.mounted.iter().filter(|(_, mounted)| mounted.server == name);
            hidden.extend(
                mounted
                    .filter(|(name, mounted)| mounted.is_listed && is_local(toolbox, name))
                    .map(|(_, mounted)| mounted.tool.clone()),
            );
            hidden
        };
        states
            .iter()
            .map(|(name, state)| report(name, state, of_server(name)))
            .collect()
    }

    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    /// Updates the offer, and returns its version.
    fn take_in(&self, states: &Snapshot) -> u64 {
        self.offer.lock().take_in(states)
    }
}

impl Offer {
    fn take_in(&mut self, states: &Snapshot) -> u64 {
        for (server, state) in states {
            if let ServerState::Ready { tools, .. } = state {
                self.tools_of.insert(server.clone(), Arc::clone(tools));
            }
        }
        let mut mounted = BTreeMap::new();
        let mut clashes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (server, tools) in &self.tools_of {
            let is_listed = match states.get(server) {
                Some(ServerState::Ready { .. }) => true,
                // One that was lost just now will be back soon; the list should not flicker.
                Some(ServerState::Connecting { .. }) => self.is_listed(server),
                _ => false,
            };
            for tool in tools.iter() {
                let name = mounted_name(server, &tool.name);
                if mounted.contains_key(&name) || self.is_taken(&name, server, &tool.name) {
                    clashes
                        .entry(server.clone())
                        .or_default()
                        .push(tool.name.to_string());
                    continue;
                }
                let mut shown = tool.clone();
                shown.name = name.clone().into();
                let entry = Mounted {
                    server: server.clone(),
                    tool: tool.name.to_string(),
                    shown,
                    is_listed,
                };
                mounted.insert(name, entry);
            }
        }
        if mounted != self.mounted {
            self.version += 1;
            self.mounted = mounted;
        }
        self.clashes = clashes;
        self.version
    }

    fn is_listed(&self, server: &str) -> bool {
        let mut mounted = self.mounted.values();
        mounted.any(|mounted| mounted.server == server && mounted.is_listed)
    }

    /// True if another tool has the name already: `b_c` of `a` and `c` of `a_b` get the same one. The first keeps it, because
    /// the meaning of a name must not change while clients use it.
    fn is_taken(&self, name: &str, server: &str, tool: &str) -> bool {
        let Some(holder) = self.mounted.get(name) else {
            return false;
        };
        let is_still_there = self
            .tools_of
            .get(&holder.server)
            .is_some_and(|tools| tools.iter().any(|tool| tool.name == holder.tool));
        is_still_there && (holder.server.as_str(), holder.tool.as_str()) != (server, tool)
    }
}

/// Notifies clients when remote servers come, go or change their tools.
pub(super) async fn follow(server: Arc<Server>) {
    let Some(remotes) = &server.remotes else { return };
    let mut states = remotes.servers.states();
    let mut told = 0;
    let mut logins = LoginNews::default();
    loop {
        let snapshot = states.borrow_and_update().clone();
        let version = remotes.take_in(&snapshot);
        if version != told && server.shown.is_any() {
            server.subscriptions.notify(Change::ToolList).await;
        }
        told = version;
        for news in logins.of(&snapshot) {
            log_messages::warn(&server, news).await;
        }
        resources::notify_status(&server).await;
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// Sends the warnings about logins to a client that has just asked for log messages.
pub(super) async fn tell_of_logins(server: Arc<Server>) {
    let Some(remotes) = &server.remotes else { return };
    let snapshot = remotes.servers.states().borrow().clone();
    for news in LoginNews::default().of(&snapshot) {
        log_messages::warn(&server, news).await;
    }
}

fn is_first_attempt(state: &ServerState) -> bool {
    matches!(state, ServerState::Connecting { problem: None })
}

/// True also for tools that are not available: the meaning of a name must not depend on installed programs.
fn is_local(toolbox: &Toolbox, name: &str) -> bool {
    Builtin::by_name(name).is_some() || toolbox.catalog.get(name).is_some()
}

/// Metadata of a call without that of the protocol and of the bridge.
fn passed_on(meta: &RequestMetaObject) -> RequestMetaObject {
    let mut meta = meta.clone();
    meta.0.0.retain(|key, _| {
        key != PROGRESS_META && !key.starts_with(PROTOCOL_META) && !key.starts_with(BRIDGE_META)
    });
    meta
}

/// A failure to reach the server, for the model to read.
fn refusal(text: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(text)]).into()
}

fn report(name: &str, state: &ServerState, hidden_tools: Vec<String>) -> RemoteReport {
    let mut report = RemoteReport {
        name: name.to_owned(),
        hidden_tools,
        ..RemoteReport::default()
    };
    match state {
        ServerState::Connecting { problem } => {
            report.state = "connecting";
            report.reason = problem.clone();
        }
        ServerState::Ready { report: how, tools } => {
            report.state = "ready";
            report.tools = Some(tools.len());
            report.transport = Some(how.step.to_string());
            report.protocol = Some(how.protocol.clone());
        }
        ServerState::LoginRequired { link, reason } => {
            report.state = "login_required";
            report.reason = Some(reason.clone());
            report.login_link = link.as_ref().map(ToString::to_string);
        }
        ServerState::Failed { reason } => {
            report.state = "failed";
            report.reason = Some(reason.clone());
        }
    }
    report
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
