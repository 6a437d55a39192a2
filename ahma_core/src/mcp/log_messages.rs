//! Output and findings as log messages, the moment they come.
//!
//! A client of the legacy era asks for them once, with `logging/setLevel`; one of the modern era with every request whose
//! log it wants. Output has level `info`, a finding a higher one by its severity, so a client that asks for `notice` gets
//! findings only. A client that does not keep up misses output; a message says how much, and `output` reads all of it.
#![expect(
    deprecated,
    reason = "log messages are deprecated in the newest revision and used by clients of all"
)]

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::{
    Peer, RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam, RequestId},
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    client,
    handler::is_modern,
    remote,
    server::Server,
    watcher::{Pace, Sink, StartAt, Watcher},
};
use crate::{
    observe::{Finding, FindingBudget, Severity},
    operation::{ClientId, Operation},
};

/// Bytes of output in one message.
const MAX_CHUNK: usize = 8 * 1024;

/// The level that each client of the legacy era asked for; nothing is sent before it has.
#[derive(Debug, Default)]
pub(super) struct LogLevels(Mutex<HashMap<ClientId, LoggingLevel>>);

impl LogLevels {
    fn of(&self, client: &ClientId) -> Option<LoggingLevel> {
        self.0.lock().get(client).copied()
    }

    /// Returns the previous level of the client, and whether no client had one.
    fn set(&self, client: ClientId, level: LoggingLevel) -> (Option<LoggingLevel>, bool) {
        let mut levels = self.0.lock();
        let is_first = levels.is_empty();
        (levels.insert(client, level), is_first)
    }

    pub(super) fn forget(&self, client: &ClientId) {
        self.0.lock().remove(client);
    }
}

/// Sets the level of a client. Its operations that run already are followed from here on.
pub(super) fn set_level(server: &Arc<Server>, level: LoggingLevel, ctx: &RequestContext<RoleServer>) {
    let client = client::of(&ctx.meta);
    let (before, is_first) = server.log_levels.set(client.clone(), level);
    if is_first {
        server.spawn(remote::tell_of_logins(server.clone()));
    }
    if before.is_some() {
        return;
    }
    for operation in server.engine.operations_of(&client) {
        if operation.ended().is_none() {
            let operations = std::slice::from_ref(&operation);
            let mut watcher =
                Watcher::new(operations).with(LogSink::for_request(server, ctx, operations, StartAt::Now));
            server.spawn(async move {
                watcher.during(operation.outcome()).await;
            });
        }
    }
}

/// Sends a warning that belongs to no request to clients of the legacy era. Those of the modern era get none.
#[cfg(feature = "client")]
pub(super) async fn warn(server: &Server, what: String) {
    let wanted = |level: &LoggingLevel| loudness(LoggingLevel::Warning) >= loudness(*level);
    let is_wanted = server.log_levels.0.lock().values().any(wanted);
    if is_wanted && let Some(peer) = server.subscriptions.peer() {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Warning, what.into());
        let _ = peer.notify_logging_message(message.with_logger("ahma_mcp")).await;
    }
}

/// Sends output and findings of operations to a client.
#[derive(Debug)]
pub(super) struct LogSink {
    cursors: Vec<LogCursor>,
    peer: Peer<RoleServer>,
    level: LevelSource,
    request: RequestId,
    /// Cancelled with the request; the modern era forbids messages after that.
    gone: CancellationToken,
}

/// Source of the level that a client asked for.
#[derive(Debug)]
enum LevelSource {
    Request(LoggingLevel),
    Client(Arc<Server>, ClientId),
}

impl LogSink {
    /// Fifty messages a second are more than can be read, and few enough to keep each chunk timely.
    pub(super) const PACE: Pace = Pace {
        interval: Duration::from_millis(20),
        heartbeat: None,
        is_behind: false,
    };

    /// None if the client did not ask for log messages.
    pub(super) fn for_request(
        server: &Arc<Server>,
        ctx: &RequestContext<RoleServer>,
        operations: &[Operation],
        start: StartAt,
    ) -> Option<Sink> {
        let (level, gone) = if is_modern(ctx) {
            (LevelSource::Request(ctx.meta.log_level()?), ctx.ct.clone())
        } else {
            let client = client::of(&ctx.meta);
            server.log_levels.of(&client)?;
            (
                LevelSource::Client(server.clone(), client),
                server.shutdown.clone(),
            )
        };
        let cursor = |operation: &Operation| LogCursor::new(operation.clone(), start);
        Some(Sink::Log(Self {
            cursors: operations.iter().map(cursor).collect(),
            peer: ctx.peer.clone(),
            level,
            request: ctx.id.clone(),
            gone,
        }))
    }

    pub(super) async fn send(&mut self) {
        let level = match &self.level {
            LevelSource::Request(level) => Some(*level),
            LevelSource::Client(server, client) => server.log_levels.of(client),
        };
        let news: Vec<_> = self.cursors.iter_mut().flat_map(LogCursor::advance).collect();
        for mut message in news {
            if level.is_some_and(|level| loudness(message.level) >= loudness(level)) {
                message.meta = Some(client::related_to(&self.request));
                tokio::select! {
                    _ = self.peer.notify_logging_message(message) => {}
                    () = self.gone.cancelled() => {}
                }
            }
        }
    }
}

/// The part of one operation that has been sent.
#[derive(Debug)]
struct LogCursor {
    operation: Operation,
    output: u64,
    findings: usize,
}

impl LogCursor {
    fn new(operation: Operation, start: StartAt) -> Self {
        let (output, findings) = match start {
            StartAt::Beginning => (0, 0),
            StartAt::Now => (operation.output().size().1, operation.next_finding()),
        };
        Self {
            operation,
            output,
            findings,
        }
    }

    /// Messages for everything new, and the cursor moves past it.
    fn advance(&mut self) -> Vec<LoggingMessageNotificationParam> {
        let mut news = Vec::new();
        let has_ended = self.operation.ended().is_some();
        let fresh = self.operation.output().since(self.output, MAX_CHUNK, has_ended);
        self.output = fresh.next;
        if !fresh.text.is_empty() {
            let mut data = self.data("output", fresh.text.into());
            if fresh.skipped_bytes > 0 {
                data["skipped_bytes"] = fresh.skipped_bytes.into();
            }
            news.push(self.message(LoggingLevel::Info, data));
        }
        let found = self.operation.findings_since(self.findings, FindingBudget::ALL);
        self.findings = found.next;
        news.extend(found.findings.iter().map(|finding| {
            let value = serde_json::to_value(finding).unwrap_or_default();
            self.message(level_of(finding), self.data("finding", value))
        }));
        news
    }

    fn data(&self, name: &str, value: Value) -> Value {
        json!({ "operation_id": self.operation.id(), "tool": self.operation.tool(), name: value })
    }

    fn message(&self, level: LoggingLevel, data: Value) -> LoggingMessageNotificationParam {
        LoggingMessageNotificationParam::new(level, data).with_logger(self.operation.tool())
    }
}

fn level_of(finding: &Finding) -> LoggingLevel {
    match finding.severity {
        Severity::Critical => LoggingLevel::Critical,
        Severity::High => LoggingLevel::Error,
        Severity::Medium => LoggingLevel::Warning,
        Severity::Low | Severity::Info => LoggingLevel::Notice,
    }
}

/// Rank of a level, which rmcp does not define.
fn loudness(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
