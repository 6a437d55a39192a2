//! The handle of one operation.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    call::{CommandPlan, Lifetime},
    jail::{ProcessUsage, Standstill},
    observe::{FindingBudget, FindingNews, FindingPage},
};

use super::{
    CallOrigin, ClientId, OperationId, OperationState, Outcome, OutputLog, OutputQuery, Principal, Snapshot,
    cell::{OperationCell, RecalledOperation, RecordedCall, Stage},
    engine::EngineCore,
    progress_state::ProgressState,
    queue::Ticket,
    run::StopReason,
};

/// Time between two searches in an output that grows.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// One run of one plan. Cheap to clone; all clones are the same operation, and dropping them ends nothing.
#[derive(Debug, Clone)]
pub struct Operation {
    cell: Arc<OperationCell>,
}

impl Operation {
    pub fn id(&self) -> &OperationId {
        &self.cell.id
    }

    pub fn tool(&self) -> &str {
        &self.cell.tool
    }

    /// The client that started it.
    pub fn client(&self) -> &ClientId {
        &self.cell.origin.client
    }

    /// The principal it belongs to.
    pub fn principal(&self) -> &Principal {
        &self.cell.origin.principal
    }

    /// Origin of its call.
    pub fn origin(&self) -> &CallOrigin {
        &self.cell.origin
    }

    /// It is meant to run until it is cancelled: nothing waits for its end, and it has no timeout.
    pub fn keeps_running(&self) -> bool {
        matches!(self.cell.lifetime, Lifetime::KeepsRunning { .. })
    }

    /// It was said which line of its output tells that it is ready.
    pub fn tells_when_ready(&self) -> bool {
        matches!(self.cell.lifetime, Lifetime::KeepsRunning { ready: Some(_) })
    }

    pub fn is_ready(&self) -> bool {
        self.cell.ready.initialized()
    }

    /// Waits until its output says that it is ready; for ever if it ends before, or if no line would tell.
    pub async fn ready(&self) {
        self.cell.ready.wait().await;
    }

    /// The operation as it is now.
    pub fn snapshot(&self) -> Snapshot {
        let cell = &*self.cell;
        let outcome = cell.outcome.get();
        let started = match &*cell.stage.lock() {
            Stage::Running(started) => Some(*started),
            Stage::Queued(_) | Stage::NeverRan => None,
        };
        let state = match (outcome, started) {
            (Some(outcome), _) => outcome.state.into(),
            (None, Some(_)) => OperationState::Running,
            (None, None) => OperationState::Queued,
        };
        let elapsed = match (outcome, started) {
            (Some(outcome), _) => outcome.duration,
            (None, Some(started)) => started.instant.elapsed(),
            (None, None) => Duration::ZERO,
        };
        let engine = cell.engine.upgrade().filter(|_| state == OperationState::Queued);
        let queue_position = engine
            .as_ref()
            .and_then(|engine| engine.queue_position(cell.ticket));
        // It may be about to begin; then nothing holds it up.
        let why_queued =
            engine
                .filter(|_| queue_position.is_some())
                .map(|engine| match engine.settings.max_operations {
                    0 | 1 => "the only slot is busy (--max-operations)".to_owned(),
                    slots => format!("all {slots} slots are busy (--max-operations)"),
                });
        let place = cell.elsewhere.as_ref().and_then(|place| place.lock().clone());
        let place = place.filter(|_| state == OperationState::Queued);
        let (queue_position, why_queued) = match place {
            Some(place) => (Some(place.position), Some(place.why)),
            None => (queue_position, why_queued),
        };
        let (output_lines, output_bytes) = cell.log.size();
        let progress = cell.progress.lock();
        Snapshot {
            id: cell.id.clone(),
            tool: cell.tool.clone(),
            command: cell.command.clone(),
            directory: cell.directory.clone(),
            state,
            keeps_running: self.keeps_running(),
            queue_position,
            created_at: cell.created_at,
            started_at: started.map(|started| started.at),
            elapsed,
            progress: progress.progress.clone(),
            step: progress.step.clone(),
            newest_line: cell.log.newest_line(),
            output_lines,
            output_bytes,
            finding_counts: progress.counts(),
            exit: outcome.and_then(|outcome| outcome.exit),
            reason: outcome.and_then(|outcome| outcome.reason.clone()).or(why_queued),
        }
    }

    /// Wakes at every change: state, output, progress. The value only says that something is new; take a
    /// [`snapshot`](Self::snapshot) as often as you have use for one.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.cell.revision.subscribe()
    }

    /// Waits for the end. Dropping the future changes nothing.
    pub async fn outcome(&self) -> Arc<Outcome> {
        Arc::clone(self.cell.outcome.wait().await)
    }

    /// The outcome, if the operation has ended.
    pub fn ended(&self) -> Option<Arc<Outcome>> {
        self.cell.outcome.get().cloned()
    }

    /// Notes that a client was given the outcome, so that it may be forgotten before undelivered ones.
    pub fn mark_seen(&self) {
        if self.cell.seen.swap(true, Ordering::Relaxed) || self.ended().is_none() {
            return;
        }
        if let Some(journal) = &self.cell.journal {
            journal.collected(self);
        }
    }

    /// True if a client was given the outcome.
    pub fn is_seen(&self) -> bool {
        self.cell.is_seen()
    }

    /// Notes that its client was given the output up to there.
    pub fn mark_read(&self, bytes: u64) {
        self.cell.read_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Bytes of output that its client has been given.
    pub fn read_bytes(&self) -> u64 {
        self.cell.read_bytes.load(Ordering::Relaxed)
    }

    /// Waits until a line of output matches, one that is printed already or a later one; for ever if none does.
    pub async fn line_matching(&self, pattern: &str) {
        let mut changes = self.watch();
        let mut from_line = 1;
        loop {
            changes.mark_unchanged();
            let query = OutputQuery::Grep {
                pattern: pattern.to_owned(),
                context: 0,
                from_line,
                max_lines: 1,
            };
            match self.output().read(query).await {
                Ok(page) if page.matches.is_some_and(|matches| matches > 0) => return,
                // The last line may have been unfinished.
                Ok(page) => from_line = page.total_lines.max(1),
                Err(error) => {
                    tracing::debug!(%error, operation = %self.id(), "its output cannot be searched");
                    return std::future::pending().await;
                }
            }
            tokio::time::sleep(SEARCH_INTERVAL).await;
            // The operation itself holds the sender.
            let _ = changes.changed().await;
        }
    }

    /// The reason why it stands still, if one is known. Reads the kernel's list of its processes.
    pub async fn standstill(&self) -> Option<Standstill> {
        if self.ended().is_some() {
            return None;
        }
        let supervisor = self.cell.supervisor.lock().clone();
        let look = tokio::task::spawn_blocking(move || supervisor.standstill());
        look.await.ok().flatten()
    }

    /// Current usage of its processes; none if there are none. Reads the kernel's list of them.
    pub fn usage(&self) -> Option<ProcessUsage> {
        let supervisor = self.cell.supervisor.lock().clone();
        supervisor.usage().filter(|_| self.ended().is_none())
    }

    /// Stops the operation and waits until all its processes are gone. An operation that has ended stays as it ended;
    /// dropping the future does not take the request back.
    pub async fn cancel(&self, reason: Option<String>) -> Arc<Outcome> {
        self.request_stop(StopReason::Cancelled(reason));
        self.outcome().await
    }

    /// The same on behalf of a server that ends.
    pub(crate) async fn interrupt(&self, reason: String) -> Arc<Outcome> {
        self.request_stop(StopReason::Interrupted(reason));
        self.outcome().await
    }

    /// Its output so far.
    pub fn output(&self) -> &OutputLog {
        &self.cell.log
    }

    /// A page of the findings, the most severe first, from index `from` on.
    pub fn findings(&self, from: usize, budget: FindingBudget) -> FindingPage {
        self.cell.progress.lock().findings().page(from, budget)
    }

    /// The findings in the order they came, from number `from` on.
    pub fn findings_since(&self, from: usize, budget: FindingBudget) -> FindingNews {
        self.cell.progress.lock().findings().since(from, budget)
    }

    /// Number of findings that were kept and are only counted now, because those of ended operations took too much memory.
    pub fn forgotten_findings(&self) -> usize {
        self.cell.progress.lock().forgotten_findings()
    }

    /// The number that the next finding will have.
    pub fn next_finding(&self) -> usize {
        self.cell.progress.lock().findings().next_number()
    }

    /// The findings that a result carries itself: the worst ones.
    pub fn worst_findings(&self) -> FindingPage {
        self.cell.worst_findings()
    }

    /// Limit on the findings of one message.
    pub fn finding_budget(&self) -> FindingBudget {
        self.cell.finding_budget()
    }

    pub(super) fn queued(
        (id, ticket): (OperationId, Ticket),
        origin: CallOrigin,
        plan: CommandPlan,
        shared: &Arc<EngineCore>,
    ) -> Self {
        let call = RecordedCall {
            id,
            origin,
            tool: plan.tool.clone(),
            command: plan.in_short(),
            directory: plan.directory.clone(),
            lifetime: plan.lifetime.clone(),
            created_at: SystemTime::now(),
            seen: false,
            journal: shared.settings.journal.clone(),
        };
        let output = OutputLog::new(call.id.clone(), shared.settings.result_bytes);
        let progress = ProgressState::of(&plan);
        let stage = Stage::Queued(Box::new(plan));
        Self::of(OperationCell {
            ticket,
            engine: Arc::downgrade(shared),
            ..OperationCell::new(call, stage, progress, output)
        })
    }

    /// An operation that another server ran or runs. What it has ended with, or ends with later, is set by its follower.
    pub(crate) fn recalled(recalled: RecalledOperation) -> Self {
        Self::of(OperationCell::recalled(recalled))
    }

    /// An operation that a worker of the cluster runs.
    pub(super) fn mirrored(recalled: RecalledOperation, ticket: Ticket, shared: &Arc<EngineCore>) -> Self {
        Self::of(OperationCell {
            ticket,
            engine: Arc::downgrade(shared),
            elsewhere: Some(Mutex::default()),
            ..OperationCell::recalled(recalled)
        })
    }

    fn of(cell: OperationCell) -> Self {
        Self { cell: Arc::new(cell) }
    }

    /// Sets what a recalled operation ended with.
    pub(crate) fn recall_end(&self, outcome: Outcome) {
        self.cell.end(outcome);
    }

    /// Takes over what a recalled operation has come to.
    pub(crate) fn recall_progress(&self, progress: ProgressState) {
        *self.cell.progress.lock() = progress;
        self.cell.changed();
    }

    /// The reason it was asked to stop for, if it was.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        match self.cell.stop.get()? {
            StopReason::Cancelled(reason) => reason.clone().or_else(|| Some(String::new())),
            StopReason::Interrupted(_) | StopReason::TimedOut(_) => None,
        }
    }

    /// Asks for the end, without waiting for it.
    pub fn request_cancel(&self, reason: Option<String>) {
        self.request_stop(StopReason::Cancelled(reason));
    }

    /// True if a worker of the cluster runs it: the end of this server is not its end.
    pub(crate) fn runs_elsewhere(&self) -> bool {
        self.cell.elsewhere.is_some()
    }

    /// Waits until it is asked to stop.
    pub(crate) async fn stop_asked(&self) {
        self.cell.stop.wait().await;
    }

    /// A number that grows with every change.
    pub(crate) fn revision(&self) -> u64 {
        *self.cell.revision.borrow()
    }

    /// True if this is its only handle.
    pub(crate) fn is_let_go(&self) -> bool {
        Arc::strong_count(&self.cell) == 1
    }

    pub(super) fn cell(&self) -> &OperationCell {
        &self.cell
    }

    /// Asks for the end, without waiting for it.
    pub(super) fn request_stop(&self, why: StopReason) {
        if self.cell.stop.set(why).is_err() {
            return;
        }
        // A queued operation has no task that could hear the request.
        if let Some(engine) = self.cell.engine.upgrade() {
            engine.abandon(self);
        }
    }
}
