//! Output and findings as log messages, the moment they come.
//!
//! A client of the older era asks for them once, with `logging/setLevel`; one of the newer era with every request whose
//! log it wants. Output is `info`; a finding is as loud as it is severe, so a client that asks for `notice` hears of
//! findings alone. A client that does not keep up misses output, is told how much, and can read all of it with `output`.
#![expect(
    deprecated,
    reason = "log messages are deprecated in the newest revision and used by clients of all"
)]

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    Peer, RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam, RequestId},
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Inner, changes::Changes, is_modern, owner, remote};
use crate::{
    observe::{Finding, FindingBudget, Severity},
    operation::{Operation, Owner},
};

/// Twenty messages a second are more than anyone reads, and no chunk waits long enough to be called late.
const PACE: Duration = Duration::from_millis(50);

const LONGEST_CHUNK: usize = 8 * 1024;

/// The level that each client of the older era asked for; nothing is told before it has.
#[derive(Debug, Default)]
pub(super) struct ClientLevels(Mutex<HashMap<Owner, LoggingLevel>>);

impl ClientLevels {
    fn of(&self, owner: &Owner) -> Option<LoggingLevel> {
        self.lock().get(owner).copied()
    }

    /// Gives the level back that stood there before, and whether no client had one.
    fn set(&self, owner: Owner, level: LoggingLevel) -> (Option<LoggingLevel>, bool) {
        let mut levels = self.lock();
        let is_first = levels.is_empty();
        (levels.insert(owner, level), is_first)
    }

    pub(super) fn forget(&self, owner: &Owner) {
        self.lock().remove(owner);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, LoggingLevel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the level of a client. Its operations that run already are followed from here on.
pub(super) fn set_level(server: &Arc<Inner>, level: LoggingLevel, ctx: &RequestContext<RoleServer>) {
    let owner = owner::of(&ctx.meta);
    let (before, is_first) = server.log_level.set(owner.clone(), level);
    if is_first {
        server.spawn(remote::tell_of_logins(server.clone()));
    }
    if before.is_some() {
        return;
    }
    for operation in server.engine.operations_of(&owner) {
        if operation.ended().is_none()
            && let Some(feed) = Feed::new(server, ctx, std::slice::from_ref(&operation), Start::Now)
        {
            server.spawn(feed.follow(operation));
        }
    }
}

/// Tells a client of the older era something that belongs to no request. Those of the newer era ask for nothing else.
#[cfg(feature = "client")]
pub(super) async fn warn(server: &Inner, what: String) {
    let wanted = |level: &LoggingLevel| loudness(LoggingLevel::Warning) >= loudness(*level);
    let is_wanted = server.log_level.lock().values().any(wanted);
    if is_wanted && let Some(peer) = server.audience.peer() {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Warning, what.into());
        let _ = peer.notify_logging_message(message.with_logger("ahma_mcp")).await;
    }
}

/// Where following an operation begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    Beginning,
    Now,
}

/// One listener, and how far it was told.
#[derive(Debug)]
pub(super) struct Feed {
    places: Vec<Place>,
    changes: Changes,
    peer: Peer<RoleServer>,
    wanted: Wanted,
    request: RequestId,
    /// Cancelled with the request; the newer era forbids messages after that.
    gone: CancellationToken,
}

#[derive(Debug)]
enum Wanted {
    ByRequest(LoggingLevel),
    ByClient(Arc<Inner>, Owner),
}

impl Feed {
    /// None if the client did not ask for log messages.
    pub(super) fn new(
        server: &Arc<Inner>,
        ctx: &RequestContext<RoleServer>,
        operations: &[Operation],
        start: Start,
    ) -> Option<Self> {
        let (wanted, gone) = if is_modern(ctx) {
            (Wanted::ByRequest(ctx.meta.log_level()?), ctx.ct.clone())
        } else {
            let owner = owner::of(&ctx.meta);
            server.log_level.of(&owner)?;
            (Wanted::ByClient(server.clone(), owner), server.shutdown.clone())
        };
        let place = |operation: &Operation| Place::new(operation.clone(), start);
        Some(Self {
            // Before the places: what comes between the two is told, too.
            changes: Changes::of(operations),
            places: operations.iter().map(place).collect(),
            peer: ctx.peer.clone(),
            wanted,
            request: ctx.id.clone(),
            gone,
        })
    }

    /// Does `work`, and meanwhile tells what the operations print and find. All of it is told before the work's result is.
    pub(super) async fn while_doing<T>(feed: Option<&mut Self>, work: impl Future<Output = T>) -> T {
        let Some(feed) = feed else {
            return work.await;
        };
        let mut work = pin!(work);
        let mut pace_ends = Instant::now();
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    feed.tell().await;
                    return done;
                }
                () = feed.changes.next(|| pace_ends) => {}
            }
            feed.tell().await;
            pace_ends = Instant::now() + PACE;
        }
    }

    /// Tells on until the operation has ended, from where it was told last.
    pub(super) async fn follow(mut self, operation: Operation) {
        Self::while_doing(Some(&mut self), operation.outcome()).await;
    }

    async fn tell(&mut self) {
        let level = match &self.wanted {
            Wanted::ByRequest(level) => Some(*level),
            Wanted::ByClient(server, owner) => server.log_level.of(owner),
        };
        let news: Vec<_> = self.places.iter_mut().flat_map(Place::news).collect();
        for message in news {
            if level.is_some_and(|level| loudness(message.level) >= loudness(level)) {
                self.send(message).await;
            }
        }
    }

    async fn send(&self, mut message: LoggingMessageNotificationParam) {
        message.meta = Some(owner::related_to(&self.request));
        tokio::select! {
            _ = self.peer.notify_logging_message(message) => {}
            () = self.gone.cancelled() => {}
        }
    }
}

/// How far one operation was told.
#[derive(Debug)]
struct Place {
    operation: Operation,
    output: u64,
    findings: usize,
}

impl Place {
    fn new(operation: Operation, start: Start) -> Self {
        let (output, findings) = match start {
            Start::Beginning => (0, 0),
            Start::Now => (operation.output().size().1, operation.next_finding()),
        };
        Self {
            operation,
            output,
            findings,
        }
    }

    /// What is new, and the place moved on past it.
    fn news(&mut self) -> Vec<LoggingMessageNotificationParam> {
        let mut news = Vec::new();
        let has_ended = self.operation.ended().is_some();
        let fresh = self
            .operation
            .output()
            .since(self.output, LONGEST_CHUNK, has_ended);
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

/// The order of the levels, which rmcp does not give.
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
