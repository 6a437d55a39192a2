//! Progress notifications for a request that is still open.
//!
//! A value must rise with every notification and none may follow the answer; a client may show the message, may keep its
//! connection open because of it, or may ignore it. So there are at most five a second, one after ten quiet seconds, and
//! a notification that is under way is finished before the answer is given. Only findings are sent at once.

use std::time::Duration;

use rmcp::{
    Peer, RoleServer,
    model::{NotificationMetaObject, NumberOrString, ProgressNotificationParam, ProgressToken, RequestId},
    service::RequestContext,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    client,
    report::OperationReport,
    watcher::{Pace, Sink, StartAt},
};
use crate::{
    observe::{Finding, FindingBudget},
    operation::Operation,
};

/// At most five messages a second.
const INTERVAL: Duration = Duration::from_millis(200);

/// Clients that watch the clock see that we are alive.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Findings are not delayed for long, only collected: this delay is not noticeable.
const FINDING_INTERVAL: Duration = Duration::from_millis(20);

/// Under this name the `_meta` of a notification carries the findings that are new.
const FINDINGS_META: &str = "ahma/findings";

/// Messages are shown on one line of a screen.
const MAX_MESSAGE_CHARS: usize = 200;

/// Sends the progress of operations to the client of one open request.
#[derive(Debug)]
pub(super) struct ProgressSink {
    operations: Vec<Operation>,
    /// For each operation, the number of the first finding that has not been sent.
    next_findings: Vec<usize>,
    /// A summary with the worst findings is due, because operations have been running for a while.
    owes_summary: bool,
    peer: Peer<RoleServer>,
    token: ProgressToken,
    meter: Meter,
    /// Cancelled with the request; after that there is no listener.
    request: CancellationToken,
}

impl ProgressSink {
    /// None if the client did not ask for progress.
    pub(super) fn for_request(
        ctx: &RequestContext<RoleServer>,
        operations: &[Operation],
        start: StartAt,
    ) -> Option<Sink> {
        let token = ctx.meta.get_progress_token()?;
        let owes_summary =
            start == StartAt::Now && operations.iter().any(|operation| operation.ended().is_none());
        Some(Sink::Progress(Self {
            next_findings: operations
                .iter()
                .map(|operation| if owes_summary { operation.next_finding() } else { 0 })
                .collect(),
            operations: operations.to_vec(),
            owes_summary,
            peer: ctx.peer.clone(),
            token,
            meter: Meter::default(),
            request: ctx.ct.clone(),
        }))
    }

    pub(super) fn pace(&self) -> Pace {
        let has_findings = !self
            .operations
            .iter()
            .map(Operation::next_finding)
            .eq(self.next_findings.iter().copied());
        Pace {
            interval: if has_findings { FINDING_INTERVAL } else { INTERVAL },
            heartbeat: Some(HEARTBEAT),
            is_behind: has_findings || self.owes_summary,
        }
    }

    pub(super) async fn send(&mut self) {
        let findings = if std::mem::take(&mut self.owes_summary) {
            findings_of(&self.operations, |operation, budget| {
                operation.findings(0, budget).findings
            })
        } else {
            self.take_findings()
        };
        self.notify(findings).await;
    }

    /// Sends findings from just before the end.
    pub(super) async fn finish(&mut self) {
        while !self.request.is_cancelled() {
            let findings = self.take_findings();
            if findings.is_empty() {
                return;
            }
            self.notify(findings).await;
        }
    }

    async fn notify(&mut self, findings: Vec<Value>) {
        let reports: Vec<_> = self
            .operations
            .iter()
            .map(|operation| OperationReport::row(&operation.snapshot()))
            .collect();
        let percent = percent(&reports);
        let mut progress = ProgressNotificationParam::new(self.token.clone(), self.meter.next(percent))
            .with_message(message(&reports));
        if percent.is_some() {
            progress = progress.with_total(100.0);
        }
        if !findings.is_empty() {
            let mut meta = NotificationMetaObject::new();
            meta.insert(FINDINGS_META.to_owned(), Value::Array(findings));
            progress.meta = Some(meta);
        }
        tokio::select! {
            _ = self.peer.notify_progress(progress) => {}
            () = self.request.cancelled() => {}
        }
    }

    /// Findings that were not sent yet. Those that do not fit into one message wait for the next.
    fn take_findings(&mut self) -> Vec<Value> {
        let mut next_findings = self.next_findings.iter_mut();
        findings_of(&self.operations, |operation, budget| match next_findings.next() {
            Some(next) => {
                let news = operation.findings_since(*next, budget);
                *next = news.next;
                news.findings
            }
            None => Vec::new(),
        })
    }
}

/// Notifies a client of the legacy era of the end of an operation that `request` started.
pub(super) async fn announce_end(
    peer: &Peer<RoleServer>,
    request: &RequestId,
    token: Option<ProgressToken>,
    report: &OperationReport,
) {
    // The client's own token identifies the request; one that we make up does not.
    let meta = token.is_none().then(|| client::related_to(request));
    let token =
        token.unwrap_or_else(|| ProgressToken(NumberOrString::String(report.operation_id.as_str().into())));
    let mut progress = ProgressNotificationParam::new(token, 100.0)
        .with_total(100.0)
        .with_message(report.told());
    progress.meta = meta;
    if let Err(error) = peer.notify_progress(progress).await {
        tracing::debug!(%error, operation = report.operation_id, "the client was not told of the end of an operation");
    }
}

/// Findings that `choose` picks from each operation, with the operation's id, up to the limit of one message.
fn findings_of(
    operations: &[Operation],
    mut choose: impl FnMut(&Operation, FindingBudget) -> Vec<Finding>,
) -> Vec<Value> {
    let Some(mut budget) = operations.first().map(Operation::finding_budget) else {
        return Vec::new();
    };
    let mut values = Vec::new();
    for operation in operations {
        if budget.findings == 0 || budget.bytes == 0 {
            break;
        }
        let chosen = choose(operation, budget);
        budget = budget.without(&chosen);
        values.extend(
            chosen
                .iter()
                .filter_map(|finding| of_operation(finding, operation)),
        );
    }
    values
}

fn of_operation(finding: &Finding, operation: &Operation) -> Option<Value> {
    let mut value = serde_json::to_value(finding).ok()?;
    value["operation_id"] = operation.id().as_str().into();
    Some(value)
}

/// Values that always rise and never run ahead of what is known.
#[derive(Debug, Default)]
struct Meter {
    last: f64,
}

impl Meter {
    /// The smallest step is this part of what is left, so that a heartbeat hardly moves the bar and none passes its end.
    const STEP: f64 = 0.00001;
    const END: f64 = 100.0;
    /// Only the answer says that all is done.
    const MAX: f64 = 99.0;

    fn next(&mut self, percent: Option<f64>) -> f64 {
        let step = (Self::END - self.last) * Self::STEP;
        self.last = percent.unwrap_or(0.0).min(Self::MAX).max(self.last + step);
        self.last
    }
}

/// The mean of several operations, with those that have ended; none if no running one reports a percentage.
fn percent(reports: &[OperationReport]) -> Option<f64> {
    if !reports.iter().any(|report| report.percent.is_some())
        && (reports.len() < 2 || !reports.iter().any(OperationReport::has_ended))
    {
        return None;
    }
    let sum: f64 = reports
        .iter()
        .map(|report| {
            if report.has_ended() {
                100.0
            } else {
                report.percent.unwrap_or(0.0)
            }
        })
        .sum();
    Some(sum / reports.len() as f64)
}

/// The state of operations on one line.
pub(super) fn message(reports: &[OperationReport]) -> String {
    let mut message = match reports {
        [] => "nothing to wait for".to_owned(),
        [report] => report.headline(),
        _ => {
            let ended = reports.iter().filter(|report| report.has_ended()).count();
            format!("{ended} of {} ended", reports.len())
        }
    };
    let newest = reports
        .iter()
        .rev()
        .find_map(|report| report.newest_line.as_deref());
    if let Some(line) = newest {
        message.push_str(": ");
        message.push_str(line);
    }
    if let Some((cut, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
        message.truncate(cut);
        message.push('…');
    }
    message
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
