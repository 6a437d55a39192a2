//! Watches operations for clients: one loop that limits the rate, and sinks that decide what to send.
//!
//! A sink never holds up a command: it sends what is newest when its turn comes. `progress` sends to an open request,
//! `log_messages` to a client's log, `resources` to subscribers, `tasks` into the state of a task.

use std::{pin::pin, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{log_messages::LogSink, progress::ProgressSink, resources::ResourceSink, tasks::TaskSink};
use crate::operation::Operation;

/// Output and the end of a short command come together; waiting this long saves a useless message.
const SETTLING: Duration = Duration::from_millis(10);

/// Point of an operation's life from which a sink reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartAt {
    Beginning,
    Now,
}

/// Sinks, and the operations that they report on.
#[derive(Debug)]
pub(super) struct Watcher {
    changes: Vec<watch::Receiver<u64>>,
    sinks: Vec<PacedSink>,
}

#[derive(Debug)]
pub(super) enum Sink {
    Progress(ProgressSink),
    Log(LogSink),
    Resource(ResourceSink),
    Task(TaskSink),
}

impl Watcher {
    /// Must come before its sinks, so that no change is missed between the two.
    pub(super) fn new(operations: &[Operation]) -> Self {
        Self {
            changes: operations.iter().map(Operation::watch).collect(),
            sinks: Vec::new(),
        }
    }

    pub(super) fn with(mut self, sink: Option<Sink>) -> Self {
        self.sinks.extend(sink.map(PacedSink::new));
        self
    }

    /// Drops the sinks of a request that has been answered.
    pub(super) fn without_request(mut self) -> Self {
        self.sinks
            .retain(|paced| !matches!(paced.sink, Sink::Progress(_)));
        self
    }

    /// Does `work`, and meanwhile lets the sinks send. What is due at the end is sent before the result is returned.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        if self.sinks.is_empty() {
            return work.await;
        }
        let mut work = pin!(work);
        let mut listen_from = Instant::now();
        loop {
            let due = self.sinks.iter().filter_map(PacedSink::due).min();
            tokio::select! {
                biased;
                done = &mut work => {
                    for paced in &mut self.sinks {
                        paced.sink.finish().await;
                    }
                    return done;
                }
                () = wait_until(due) => {
                    let now = Instant::now();
                    for paced in &mut self.sinks {
                        if paced.due().is_some_and(|due| due <= now) {
                            paced.send().await;
                        }
                    }
                }
                () = change_after(listen_from, &mut self.changes) => {
                    let now = Instant::now();
                    listen_from = now + SETTLING;
                    for paced in &mut self.sinks {
                        paced.pacer.changed_at.get_or_insert(now);
                    }
                }
            }
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Waits for a change, but not before `from`: a command that prints a lot changes all the time. The sinks hold the
/// operations, so no change is the last.
async fn change_after(from: Instant, changes: &mut [watch::Receiver<u64>]) {
    if changes.is_empty() {
        return std::future::pending().await;
    }
    sleep_until(from).await;
    let each = changes.iter_mut().map(|change| Box::pin(change.changed()));
    let _ = futures::future::select_all(each).await;
}

#[derive(Debug)]
struct PacedSink {
    sink: Sink,
    pacer: Pacer,
}

impl PacedSink {
    fn new(sink: Sink) -> Self {
        Self {
            sink,
            pacer: Pacer::new(Instant::now()),
        }
    }

    fn due(&self) -> Option<Instant> {
        self.pacer.due(&self.sink.pace())
    }

    async fn send(&mut self) {
        self.pacer.changed_at = None;
        self.sink.send().await;
        self.pacer.last_sent = Some(Instant::now());
    }
}

/// Frequency of a sink's messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// Least time between two messages.
    pub(super) interval: Duration,
    /// Time after which a message is sent although nothing has changed.
    pub(super) heartbeat: Option<Duration>,
    /// The last message could not carry everything, so the next does not wait for a change.
    pub(super) is_behind: bool,
}

#[derive(Debug)]
struct Pacer {
    started: Instant,
    last_sent: Option<Instant>,
    /// First change since the last message.
    changed_at: Option<Instant>,
}

impl Pacer {
    fn new(started: Instant) -> Self {
        Self {
            started,
            last_sent: None,
            changed_at: None,
        }
    }

    /// Time of the next message, as far as it is known. The first message does not wait for the interval.
    fn due(&self, pace: &Pace) -> Option<Instant> {
        let allowed = self.last_sent.map_or(self.started, |sent| sent + pace.interval);
        let news = match self.changed_at {
            Some(changed) => Some(allowed.max(changed + SETTLING)),
            None => pace.is_behind.then_some(allowed),
        };
        let heartbeat = pace
            .heartbeat
            .map(|heartbeat| self.last_sent.unwrap_or(self.started) + heartbeat);
        news.into_iter().chain(heartbeat).min()
    }
}

impl Sink {
    fn pace(&self) -> Pace {
        match self {
            Self::Progress(sink) => sink.pace(),
            Self::Log(_) => LogSink::PACE,
            Self::Resource(_) => ResourceSink::PACE,
            Self::Task(_) => TaskSink::PACE,
        }
    }

    async fn send(&mut self) {
        match self {
            Self::Progress(sink) => sink.send().await,
            Self::Log(sink) => sink.send().await,
            Self::Resource(sink) => sink.send().await,
            Self::Task(sink) => sink.send(),
        }
    }

    async fn finish(&mut self) {
        match self {
            Self::Progress(sink) => sink.finish().await,
            Self::Log(sink) => sink.send().await,
            // Subscribers are notified of the end of an operation elsewhere, and a task ends by its result.
            Self::Resource(_) | Self::Task(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
