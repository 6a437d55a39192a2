//! Progress notifications for a request that is still open.
//!
//! A value must rise with every notification and none may follow the answer; a client may show the message, may keep its
//! connection open because of it, or may ignore it. So there are at most five a second, one after ten quiet seconds, and
//! a notification that is under way is finished before the answer is given. Only findings are told at once.

use std::{future::Future, pin::pin, time::Duration};

use rmcp::{
    Peer, RoleServer,
    model::{NotificationMetaObject, NumberOrString, ProgressNotificationParam, ProgressToken, RequestId},
    service::RequestContext,
};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{changes::Changes, feed::Start, owner, report::OperationReport};
use crate::{
    observe::{Finding, FindingBudget},
    operation::Operation,
};

/// At most five a second.
const PACE: Duration = Duration::from_millis(200);

/// Clients that watch the clock see that we are alive.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A finding does not wait for its turn, only for others that come with it.
const FINDING_PACE: Duration = Duration::from_millis(50);

/// Under this name the `_meta` of a notification carries the findings that are new.
const FINDINGS_META: &str = "ahma/findings";

/// Messages are shown on one line of a screen.
const LONGEST_MESSAGE: usize = 200;

/// Tells the client of one request how operations get on.
#[derive(Debug)]
pub(super) struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    meter: Meter,
    /// Cancelled with the request; then nobody listens any more.
    request: CancellationToken,
}

impl Reporter {
    /// None if the client did not ask for progress.
    pub(super) fn new(ctx: &RequestContext<RoleServer>) -> Option<Self> {
        let token = ctx.meta.get_progress_token()?;
        Some(Self {
            peer: ctx.peer.clone(),
            token,
            meter: Meter::default(),
            request: ctx.ct.clone(),
        })
    }

    /// Does `work`, and meanwhile tells how `operations` get on. What they found is told before the work's result is.
    pub(super) async fn while_doing<T>(
        reporter: Option<Self>,
        operations: &[Operation],
        start: Start,
        work: impl Future<Output = T>,
    ) -> T {
        let Some(mut reporter) = reporter else {
            return work.await;
        };
        let mut work = pin!(work);
        let mut changes = Changes::of(operations);
        let mut found = vec![0; operations.len()];
        let mut last_sent = Instant::now();
        let mut pace = Duration::ZERO;
        if let Start::Now = start
            && operations.iter().any(|operation| operation.ended().is_none())
        {
            reporter.tell_so_far(operations, &mut found).await;
            pace = PACE;
        }
        loop {
            let is_behind = || {
                operations
                    .iter()
                    .map(Operation::next_finding)
                    .ne(found.iter().copied())
            };
            let next_turn = || last_sent + if is_behind() { pace.min(FINDING_PACE) } else { pace };
            let was_behind = is_behind();
            tokio::select! {
                biased;
                done = &mut work => {
                    reporter.tell_rest(operations, &mut found).await;
                    return done;
                }
                () = tokio::time::sleep_until(last_sent + FINDING_PACE), if was_behind => {}
                () = changes.next(next_turn), if !was_behind => {}
                () = tokio::time::sleep_until(last_sent + HEARTBEAT) => {}
            }
            let news = new_findings(operations, &mut found);
            reporter.tell(operations, news).await;
            last_sent = Instant::now();
            pace = PACE;
        }
    }

    /// Tells someone who comes later how `operations` stand, with the worst of what they found.
    async fn tell_so_far(&mut self, operations: &[Operation], found: &mut [usize]) {
        for (operation, found) in operations.iter().zip(found) {
            *found = operation.next_finding();
        }
        let worst = findings_of(operations, |operation, budget| {
            operation.findings(0, budget).findings
        });
        self.tell(operations, worst).await;
    }

    /// Tells what was found just before the end.
    async fn tell_rest(&mut self, operations: &[Operation], found: &mut [usize]) {
        while !self.request.is_cancelled() {
            let news = new_findings(operations, found);
            if news.is_empty() {
                return;
            }
            self.tell(operations, news).await;
        }
    }

    /// Tells how `operations` get on, and of `findings`.
    async fn tell(&mut self, operations: &[Operation], findings: Vec<Value>) {
        let reports: Vec<_> = operations
            .iter()
            .map(|operation| OperationReport::row(&operation.snapshot()))
            .collect();
        let value = self.meter.next(percent(&reports));
        let mut progress =
            ProgressNotificationParam::new(self.token.clone(), value).with_message(message(&reports));
        if percent(&reports).is_some() {
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
}

/// Tells a client of the older era that an operation which `request` started has ended.
pub(super) async fn announce_end(
    peer: &Peer<RoleServer>,
    request: &RequestId,
    token: Option<ProgressToken>,
    report: &OperationReport,
) {
    // The client's own token says whose it is; one that we make up does not.
    let meta = token.is_none().then(|| owner::related_to(request));
    let token =
        token.unwrap_or_else(|| ProgressToken(NumberOrString::String(report.operation_id.as_str().into())));
    let mut progress = ProgressNotificationParam::new(token, 100.0)
        .with_total(100.0)
        .with_message(report.told());
    progress.meta = meta;
    if let Err(error) = peer.notify_progress(progress).await {
        tracing::debug!(%error, operation = report.operation_id, "nobody heard of the end of an operation");
    }
}

/// Findings that were not told yet. Those that do not fit into one message wait for the next.
fn new_findings(operations: &[Operation], found: &mut [usize]) -> Vec<Value> {
    let mut found = found.iter_mut();
    findings_of(operations, |operation, budget| match found.next() {
        Some(found) => {
            let news = operation.findings_since(*found, budget);
            *found = news.next;
            news.findings
        }
        None => Vec::new(),
    })
}

/// What `choose` gives for each operation, with the operation's id, as far as one message may carry it.
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
    const MOST: f64 = 99.0;

    fn next(&mut self, percent: Option<f64>) -> f64 {
        let step = (Self::END - self.last) * Self::STEP;
        self.last = percent.unwrap_or(0.0).min(Self::MOST).max(self.last + step);
        self.last
    }
}

/// Of several operations the mean, counting those that have ended; none if nothing is known of any that runs.
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

/// How operations stand, on one line.
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
    if let Some((cut, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
        message.truncate(cut);
        message.push('…');
    }
    message
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
