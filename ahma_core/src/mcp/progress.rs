//! Progress notifications for a request that is still open.
//!
//! A value must rise with every notification and none may follow the answer; a client may show the message, may keep its
//! connection open because of it, or may ignore it. So there are at most five a second, one after ten quiet seconds, and
//! a notification that is under way is finished before the answer is given.

use std::{future::Future, pin::pin, time::Duration};

use rmcp::{
    Peer, RoleServer,
    model::{NumberOrString, ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::report::OperationReport;
use crate::operation::Operation;

/// At most five a second.
const PACE: Duration = Duration::from_millis(200);

/// Clients that watch the clock see that we are alive.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Output and the end of a short command come together; waiting this long saves a notification that nobody needs.
const SETTLING: Duration = Duration::from_millis(20);

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

    /// Does `work`, and meanwhile tells how `operations` get on.
    pub(super) async fn while_doing<T>(
        reporter: Option<Self>,
        operations: &[Operation],
        work: impl Future<Output = T>,
    ) -> T {
        let Some(mut reporter) = reporter else {
            return work.await;
        };
        let mut work = pin!(work);
        let mut changes: Vec<_> = operations.iter().map(Operation::watch).collect();
        let mut last_sent = Instant::now();
        let mut pace_ends = last_sent;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = next_change(&mut changes, pace_ends) => {}
                () = tokio::time::sleep_until(last_sent + HEARTBEAT) => {}
            }
            reporter.tell(operations).await;
            last_sent = Instant::now();
            pace_ends = last_sent + PACE;
        }
    }

    async fn tell(&mut self, operations: &[Operation]) {
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
        tokio::select! {
            _ = self.peer.notify_progress(progress) => {}
            () = self.request.cancelled() => {}
        }
    }
}

/// Tells a client of the older era that an operation it started has ended.
pub(super) async fn announce_end(
    peer: &Peer<RoleServer>,
    token: Option<ProgressToken>,
    report: &OperationReport,
) {
    let token =
        token.unwrap_or_else(|| ProgressToken(NumberOrString::String(report.operation_id.as_str().into())));
    let message = format!(
        "{}\n{}",
        report.headline(),
        report.output.as_deref().unwrap_or_default()
    );
    let progress = ProgressNotificationParam::new(token, 100.0)
        .with_total(100.0)
        .with_message(message);
    if let Err(error) = peer.notify_progress(progress).await {
        tracing::debug!(%error, operation = report.operation_id, "nobody heard of the end of an operation");
    }
}

/// Waits for news, and then as long as the pace asks for.
async fn next_change(changes: &mut [watch::Receiver<u64>], pace_ends: Instant) {
    if changes.is_empty() {
        return std::future::pending().await;
    }
    let any = changes.iter_mut().map(|change| Box::pin(change.changed()));
    let (told, ..) = futures::future::select_all(any).await;
    if told.is_err() {
        // The operation is forgotten; its end is for others to tell.
        return std::future::pending().await;
    }
    tokio::time::sleep_until(pace_ends.max(Instant::now() + SETTLING)).await;
    for change in changes {
        change.mark_unchanged();
    }
}

/// Values that always rise and never run ahead of what is known.
#[derive(Debug, Default)]
struct Meter {
    last: f64,
}

impl Meter {
    /// A thousandth of a percent is the smallest step, so that a heartbeat hardly moves the bar.
    const STEP: f64 = 0.001;
    /// Only the answer says that all is done.
    const MOST: f64 = 99.0;

    fn next(&mut self, percent: Option<f64>) -> f64 {
        self.last = percent.unwrap_or(0.0).min(Self::MOST).max(self.last + Self::STEP);
        self.last
    }
}

/// Of several operations the mean, counting those that have ended; none if nothing is known of any that runs.
fn percent(reports: &[OperationReport]) -> Option<f64> {
    let ended = |report: &OperationReport| report.exit_code.is_some() || report.is_failure();
    if !reports.iter().any(|report| report.percent.is_some())
        && (reports.len() < 2 || !reports.iter().any(ended))
    {
        return None;
    }
    let sum: f64 = reports
        .iter()
        .map(|report| {
            if ended(report) {
                100.0
            } else {
                report.percent.unwrap_or(0.0)
            }
        })
        .sum();
    Some(sum / reports.len() as f64)
}

fn message(reports: &[OperationReport]) -> String {
    let mut message = match reports {
        [] => "nothing to wait for".to_owned(),
        [report] => report.headline(),
        _ => {
            let ended = reports
                .iter()
                .filter(|report| report.exit_code.is_some() || report.is_failure())
                .count();
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
