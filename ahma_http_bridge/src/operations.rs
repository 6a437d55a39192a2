//! Operations of backends, as far as their reports go: which are open, what became of them, in the audit trail and in numbers.
//!
//! The bridge knows nothing of tools but the names in these reports ([`NOTIFY_OPERATION`](ahma_common::contract)).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::Notify;

use crate::activity::Activity;
use crate::audit::Audit;
use crate::metrics::OperationMetrics;

/// Ended operations that are remembered here. All of them are in the history of the backends.
const MAX_ENDED: usize = 1000;

/// The message of a backend.
#[derive(Debug, Deserialize)]
pub(crate) struct OperationNews {
    event: OperationEvent,
    operation: OperationReport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OperationEvent {
    Queued,
    Started,
    Ended,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct OperationReport {
    pub(crate) id: String,
    pub(crate) principal: Option<String>,
    pub(crate) tool: String,
    pub(crate) status: String,
    pub(crate) exit_code: Option<i64>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) cpu_ms: Option<u64>,
    pub(crate) max_rss_bytes: Option<u64>,
    pub(crate) output_bytes: Option<u64>,
    pub(crate) findings: Option<BTreeMap<String, u64>>,
    pub(crate) reason: Option<String>,
}

/// One that was reported, with what the bridge knows of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KnownOperation {
    #[serde(flatten)]
    pub(crate) report: OperationReport,
    /// The session that started it, unless its client has none.
    pub(crate) session: Option<Arc<str>>,
    /// Time of the first report: RFC 3339.
    pub(crate) since: String,
}

/// The party an operation belongs to, as the sink of its backend knows it.
#[derive(Debug, Default)]
pub(crate) struct OperationOwner {
    pub(crate) session: Option<Arc<str>>,
    /// Keeps the session in use while it runs.
    pub(crate) activity: Option<Activity>,
}

/// Name of a client that has not authenticated.
const ANONYMOUS: &str = "anonymous";

/// Records the operations of all backends: in the audit trail, in counters, and the last ones in memory.
#[derive(Debug)]
pub(crate) struct OperationRecorder {
    audit: Arc<Audit>,
    pub(crate) metrics: OperationMetrics,
    /// Newest last.
    ended: Mutex<VecDeque<KnownOperation>>,
}

impl OperationRecorder {
    pub(crate) fn new(audit: Arc<Audit>) -> Self {
        Self {
            audit,
            metrics: OperationMetrics::default(),
            ended: Mutex::default(),
        }
    }

    /// Those that ended, oldest first.
    pub(crate) fn ended(&self) -> Vec<KnownOperation> {
        self.ended.lock().iter().cloned().collect()
    }

    fn record_start(&self, operation: &KnownOperation) {
        let OperationReport { id, tool, .. } = &operation.report;
        let fields = json!({
            "principal": operation.report.principal(),
            "session": operation.session,
            "operation": id,
            "tool": tool,
        });
        self.audit.record("operation_started", fields);
    }

    fn record_end(&self, operation: KnownOperation) {
        let report = &operation.report;
        self.metrics.ended(
            &report.tool,
            &report.status,
            report.principal(),
            report.duration_ms,
        );
        let fields = json!({
            "principal": report.principal(),
            "session": operation.session,
            "operation": report.id,
            "tool": report.tool,
            "status": report.status,
            "exit_code": report.exit_code,
            "duration_ms": report.duration_ms,
            "cpu_ms": report.cpu_ms,
            "max_rss_bytes": report.max_rss_bytes,
            "output_bytes": report.output_bytes,
            "findings": report.findings,
            "reason": report.reason,
        });
        self.audit.record("operation_ended", fields);
        let mut ended = self.ended.lock();
        if ended.len() == MAX_ENDED {
            ended.pop_front();
        }
        ended.push_back(operation);
    }

    /// Records that a backend ended without being asked to.
    pub(crate) fn backend_died(&self, pid: u32, outcome: &str, owner: &BackendOwner) {
        let BackendOwner { principal, session } = owner;
        let fields = json!({ "principal": principal, "session": session, "pid": pid, "outcome": outcome });
        self.audit.record("backend_died", fields);
    }
}

/// The client that has a backend to itself, if there is one.
#[derive(Debug, Default)]
pub(crate) struct BackendOwner {
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) session: Option<Arc<str>>,
}

impl OperationReport {
    pub(crate) fn principal(&self) -> &str {
        self.principal.as_deref().unwrap_or(ANONYMOUS)
    }
}

/// The operations of one backend that have not ended.
#[derive(Debug)]
pub(crate) struct OpenOperations {
    pub(crate) recorder: Arc<OperationRecorder>,
    open: Mutex<HashMap<Box<str>, OpenOperation>>,
    /// Notified whenever one has ended.
    one_ended: Notify,
}

#[derive(Debug)]
struct OpenOperation {
    known: KnownOperation,
    is_queued: bool,
    _activity: Option<Activity>,
}

/// Numbers of operations that wait and that run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OperationCount {
    pub(crate) queued: usize,
    pub(crate) running: usize,
}

impl OpenOperations {
    pub(crate) fn new(recorder: Arc<OperationRecorder>) -> Self {
        Self {
            recorder,
            open: Mutex::default(),
            one_ended: Notify::new(),
        }
    }

    /// Waits until none is open.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.one_ended.notified();
            if self.open.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Takes a report in. `owner` is asked only about one that is new.
    pub(crate) fn hear(&self, news: &Value, owner: impl FnOnce() -> OperationOwner) {
        let OperationNews {
            event,
            operation: report,
        } = match OperationNews::deserialize(news) {
            Ok(news) => news,
            Err(error) => return tracing::warn!(%error, "a report of a backend cannot be read"),
        };
        let known = self.open.lock().remove(&*report.id);
        let mut open = known.unwrap_or_else(|| {
            let OperationOwner { session, activity } = owner();
            let open = OpenOperation {
                known: KnownOperation {
                    report: report.clone(),
                    session,
                    since: OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
                },
                is_queued: false,
                _activity: activity,
            };
            self.recorder.record_start(&open.known);
            open
        });
        open.is_queued = event == OperationEvent::Queued;
        let id = report.id.as_str().into();
        open.known.report = report;
        match event {
            OperationEvent::Ended => {
                self.recorder.record_end(open.known);
                self.one_ended.notify_waiters();
            }
            OperationEvent::Queued | OperationEvent::Started => {
                self.open.lock().insert(id, open);
            }
        }
    }

    /// The backend is gone, and with it what it ran.
    pub(crate) fn lost(&self, reason: &str) {
        let open: Vec<OpenOperation> = self.open.lock().drain().map(|(_, open)| open).collect();
        for mut operation in open {
            operation.known.report.status = "interrupted".to_owned();
            operation.known.report.reason = Some(reason.to_owned());
            self.recorder.record_end(operation.known);
        }
        self.one_ended.notify_waiters();
    }

    pub(crate) fn count(&self) -> OperationCount {
        let open = self.open.lock();
        let queued = open.values().filter(|operation| operation.is_queued).count();
        OperationCount {
            queued,
            running: open.len() - queued,
        }
    }

    pub(crate) fn all(&self) -> Vec<KnownOperation> {
        let open = self.open.lock();
        open.values().map(|operation| operation.known.clone()).collect()
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.open.lock().contains_key(id)
    }
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
