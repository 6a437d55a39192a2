//! Follows one operation of the cluster, from the queue to its end, and passes a wish to stop it on.

use std::{pin::pin, sync::Arc, time::Duration};

use ahma_cluster::{End, EndCause, Entry, FrontEnd, Goal, OperationLog, Piece, ReadEnd, Stage, read_output};
use serde::Deserialize as _;
use tokio::sync::{oneshot, watch};

use super::wire::{EndReport, ProgressReport};
use crate::operation::{EndState, LossCause, Mirror, Operation, OperationState, PlaceInQueue};

/// Time between two requests to stop, and between two looks at the queue.
const PACE: Duration = Duration::from_secs(1);

const RETRY: Duration = Duration::from_millis(200);

/// Said where output is missing.
const NOT_KEPT: &str =
    "the cluster does not keep it any more: the principal's newer operations needed the room";

pub(super) struct Follower {
    pub(super) front: FrontEnd,
    pub(super) owner: String,
    pub(super) mirror: Mirror,
    /// Told when all that was there at the beginning is read.
    pub(super) caught_up: Option<oneshot::Sender<()>>,
    /// Some of its output is not kept any more.
    pub(super) is_incomplete: bool,
}

impl Follower {
    pub(super) async fn run(mut self) {
        let operation = self.mirror.operation().clone();
        let mut read = 0;
        loop {
            let is_news = |entry: &Entry| entry.folded.attempts() > read || entry.folded.has_ended();
            let entry = self.changed(&operation, is_news).await;
            let attempts = entry.folded.attempts();
            if read == attempts {
                let Stage::Ended { end, .. } = &entry.folded.stage else {
                    continue;
                };
                return self.end(&entry, end).await;
            }
            read += 1;
            if read > 1 {
                self.mirror.begins_again(read);
            }
            if let Some(at) = entry.claimed_at {
                self.mirror.started(at);
            }
            if entry.output_dropped {
                self.is_incomplete = true;
            } else {
                self.read(&operation, read).await;
            }
        }
    }

    /// Waits until the log is as wanted; passes on a wish to stop it meanwhile.
    async fn changed(&mut self, operation: &Operation, is_so: impl Fn(&Entry) -> bool) -> Entry {
        let mut changes = self.front.tail().changes_of(operation.id().as_str());
        loop {
            let entry = self.front.tail().entry(operation.id().as_str());
            if let Some(entry) = entry {
                if is_so(&entry) {
                    return entry;
                }
                if matches!(entry.folded.stage, Stage::Queued { .. }) {
                    self.wait_in_queue(operation);
                }
                if let Some(reason) = operation.stop_reason() {
                    self.front
                        .cancel(&entry, Some(reason).filter(|reason| !reason.is_empty()))
                        .await;
                }
            }
            let is_stopped = operation.stop_reason().is_some();
            tokio::select! {
                _ = changes.changed() => {}
                () = operation.stop_asked(), if !is_stopped => {}
                () = tokio::time::sleep(PACE) => {}
            }
        }
    }

    fn wait_in_queue(&mut self, operation: &Operation) {
        let position = self.front.tail().place_in_queue(operation.id().as_str());
        let pool = self.front.link().pool();
        let place = position.map(|position| PlaceInQueue {
            position,
            why: format!("it waits for a worker of pool {pool}"),
        });
        self.mirror.waits(place);
        if let Some(caught_up) = self.caught_up.take() {
            let _ = caught_up.send(());
        }
    }

    /// Reads the output of an attempt until that is over.
    async fn read(&mut self, operation: &Operation, attempt: u32) {
        let (set_goal, goal) = watch::channel(Goal::Open);
        let (front, owner) = (self.front.clone(), self.owner.clone());
        let place = (owner.as_str(), operation.id().as_str(), attempt);
        let (mirror, caught_up) = (&mut self.mirror, &mut self.caught_up);
        let mut reading = pin!(read_output(front.link(), place, goal, |piece| match piece {
            Piece::Output(bytes) => mirror.print(&bytes),
            Piece::Finding(json) => match serde_json::from_slice(&json) {
                Ok(finding) => mirror.found(finding),
                Err(error) => tracing::debug!(%error, "a finding cannot be read"),
            },
            Piece::Progress(json) => {
                if let Ok(report) = serde_json::from_slice::<ProgressReport>(&json) {
                    if report.ready {
                        mirror.is_ready();
                    }
                    mirror.reached(report.progress, report.step);
                }
            }
            Piece::CaughtUp => {
                if let Some(caught_up) = caught_up.take() {
                    let _ = caught_up.send(());
                }
            }
        }));
        let mut until = pin!(watch_attempt(&front, operation, attempt, set_goal));
        let mut is_over = false;
        let read = loop {
            tokio::select! {
                read = &mut reading => break read,
                () = &mut until, if !is_over => is_over = true,
            }
        };
        match read {
            Ok(ReadEnd::Whole | ReadEnd::Cut) => {}
            Ok(ReadEnd::Incomplete) => self.is_incomplete = true,
            Err(error) => tracing::warn!(%error, operation = %operation.id(), "its output cannot be read"),
        }
    }

    async fn end(mut self, entry: &Entry, cause: &EndCause) {
        let caught_up = self.caught_up.take();
        match cause {
            EndCause::Reported { state } => match read_end(&self.front, entry).await {
                Some(end) => {
                    let report = EndReport::deserialize(&end.outcome);
                    self.end_as_reported(state, report.unwrap_or_default());
                }
                None => {
                    let reason = "its log is not kept any more".to_owned();
                    self.mirror.end_as(EndState::Interrupted, reason);
                }
            },
            EndCause::Dropped { state, why } => self.mirror.end_as(end_state(state), why.clone()),
            EndCause::WorkerLost { worker } => {
                let reason = format!("its worker {worker} is gone; what it printed until then is kept");
                self.mirror.end_as(EndState::Interrupted, reason);
            }
        }
        if let Some(caught_up) = caught_up {
            let _ = caught_up.send(());
        }
    }

    fn end_as_reported(self, state: &str, report: EndReport) {
        if let Some(lost) = report.lost {
            self.mirror
                .lost(lost.total_bytes, lost.total_lines, lost.tail, lost.cause);
        } else if let (true, Some(outcome)) = (self.is_incomplete, &report.outcome) {
            // The result has the end of it in any case.
            let excerpt = &outcome.output;
            let end = excerpt.end().as_bytes().to_vec();
            let cause = LossCause::Storage(NOT_KEPT.to_owned());
            self.mirror
                .lost(excerpt.total_bytes, excerpt.total_lines, end, cause);
        }
        match report.outcome {
            Some(outcome) => self.mirror.end(outcome),
            None => {
                let reason = report
                    .refusal
                    .unwrap_or_else(|| "its worker gave no reason".to_owned());
                self.mirror.end_as(end_state(state), reason);
            }
        }
    }
}

/// Sets the goal of a reader when the attempt is over, and asks the worker to stop when that is wanted.
async fn watch_attempt(front: &FrontEnd, operation: &Operation, attempt: u32, goal: watch::Sender<Goal>) {
    let mut changes = front.tail().changes_of(operation.id().as_str());
    loop {
        if let Some(entry) = front.tail().entry(operation.id().as_str()) {
            if !is_running(&entry, attempt) {
                goal.send_replace(goal_of(front, &entry, attempt).await);
                return;
            }
            if let Some(reason) = operation.stop_reason() {
                front
                    .cancel(&entry, Some(reason).filter(|reason| !reason.is_empty()))
                    .await;
            }
        }
        let is_stopped = operation.stop_reason().is_some();
        tokio::select! {
            _ = changes.changed() => {}
            () = operation.stop_asked(), if !is_stopped => {}
            () = tokio::time::sleep(PACE) => {}
        }
    }
}

/// Summary of an attempt that is over.
async fn goal_of(front: &FrontEnd, entry: &Entry, attempt: u32) -> Goal {
    let published = |end: &End| Goal::Ended {
        bytes: end.bytes,
        findings: end.findings,
    };
    let nothing = Goal::Ended {
        bytes: 0,
        findings: 0,
    };
    match front.tail().recent_end(&entry.operation) {
        Some(end) if end.attempt == attempt => return published(&end),
        Some(_) | None => {}
    }
    let Some(log) = read_log(front, entry).await else {
        return nothing;
    };
    match &log.end {
        Some(end) if end.attempt == attempt => published(end),
        _ => {
            let lost_at = log.lost_at.get(attempt as usize - 1);
            lost_at.map_or(nothing, |at| Goal::Cut { at: *at })
        }
    }
}

/// The end of an operation as its worker reported it; nothing if its log is not kept any more.
async fn read_end(front: &FrontEnd, entry: &Entry) -> Option<Arc<End>> {
    match front.tail().recent_end(&entry.operation) {
        Some(end) => Some(end),
        None => read_log(front, entry).await?.end.map(Arc::new),
    }
}

async fn read_log(front: &FrontEnd, entry: &Entry) -> Option<OperationLog> {
    loop {
        match front.log_of(entry).await {
            Ok(log) => return log,
            Err(error) => {
                tracing::debug!(%error, operation = entry.operation, "its log cannot be read; trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

fn is_running(entry: &Entry, wanted: u32) -> bool {
    matches!(&entry.folded.stage, Stage::Running { attempt, .. } if *attempt == wanted)
}

fn end_state(name: &str) -> EndState {
    let state = OperationState::named(name).and_then(OperationState::as_end);
    state.unwrap_or(EndState::Failed)
}
