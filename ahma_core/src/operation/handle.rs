//! The handle of one operation.

use std::{
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{SetOnce, watch};

use crate::{
    call::{CommandPlan, Lifetime},
    jail::{ProcessUsage, Standstill, SupervisorId},
    observe::{FindingBudget, FindingNews, FindingPage},
};

use super::{
    CallOrigin, ClientId, Journal, OperationId, OperationState, Outcome, OutputLog, OutputQuery, Principal,
    Snapshot, engine::EngineCore, progress_state::ProgressState, queue::Ticket, recalled::RecalledOperation,
    run::StopReason,
};

/// Time between two searches in an output that grows.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// Findings that a result carries itself; the rest is read in pages.
const RESULT_FINDINGS: usize = 50;

/// One run of one plan. Cheap to clone; all clones are the same operation, and dropping them ends nothing.
#[derive(Debug, Clone)]
pub struct Operation {
    cell: Arc<OperationCell>,
}

/// State that the handles and the task of an operation share.
#[derive(Debug)]
pub(super) struct OperationCell {
    pub(super) id: OperationId,
    pub(super) ticket: Ticket,
    origin: CallOrigin,
    pub(super) tool: String,
    /// The command on one short line.
    pub(super) command: String,
    pub(super) directory: PathBuf,
    pub(super) log: OutputLog,
    created_at: SystemTime,
    stage: Mutex<Stage>,
    progress: Mutex<ProgressState>,
    /// The first request to stop wins.
    stop: SetOnce<StopReason>,
    /// Set once, as the last thing that happens to an operation.
    outcome: SetOnce<Arc<Outcome>>,
    seen: AtomicBool,
    /// Bytes of output that its client has been given.
    read_bytes: AtomicU64,
    lifetime: Lifetime,
    /// Set when the output says that an operation which keeps running is ready.
    ready: SetOnce<()>,
    /// Of the command that runs, or ran last.
    supervisor: Mutex<SupervisorId>,
    revision: watch::Sender<u64>,
    /// Hears when its result is collected.
    journal: Option<Arc<dyn Journal>>,
    engine: Weak<EngineCore>,
    /// For an operation that a worker of the cluster runs: why it has not begun.
    elsewhere: Option<Mutex<Option<PlaceInQueue>>>,
}

/// Why an operation of the cluster waits.
#[derive(Debug, Clone)]
pub(crate) struct PlaceInQueue {
    pub(crate) position: usize,
    pub(crate) why: String,
}

/// Life of an operation before its outcome.
#[derive(Debug)]
enum Stage {
    Queued(Box<CommandPlan>),
    Running(Started),
    /// Ended without ever running.
    NeverRan,
}

/// When an operation began to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Started {
    pub(super) instant: Instant,
    pub(super) at: SystemTime,
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

    /// Where its call came from.
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

    /// Tells of every change: state, output, progress. The value only says that something is new; take a
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

    /// What its processes use now; none if there are none. Reads the kernel's list of them.
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
        let cell = OperationCell {
            log: OutputLog::new(id.clone(), shared.settings.result_bytes),
            id,
            ticket,
            origin,
            tool: plan.tool.clone(),
            command: plan.in_short(),
            directory: plan.directory.clone(),
            lifetime: plan.lifetime.clone(),
            ready: SetOnce::new(),
            created_at: SystemTime::now(),
            progress: Mutex::new(ProgressState::of(&plan)),
            stage: Mutex::new(Stage::Queued(Box::new(plan))),
            stop: SetOnce::new(),
            outcome: SetOnce::new(),
            seen: AtomicBool::new(false),
            read_bytes: AtomicU64::new(0),
            supervisor: Mutex::default(),
            revision: watch::Sender::new(0),
            journal: shared.settings.journal.clone(),
            engine: Arc::downgrade(shared),
            elsewhere: None,
        };
        Self { cell: Arc::new(cell) }
    }

    /// An operation that another server ran or runs. What it has ended with, or ends with later, is set by its follower.
    pub(crate) fn recalled(recalled: RecalledOperation) -> Self {
        Self::recalled_as(recalled, Ticket::MAX, Weak::new(), None)
    }

    /// An operation that a worker of the cluster runs.
    pub(super) fn mirrored(recalled: RecalledOperation, ticket: Ticket, shared: &Arc<EngineCore>) -> Self {
        Self::recalled_as(recalled, ticket, Arc::downgrade(shared), Some(Mutex::default()))
    }

    fn recalled_as(
        recalled: RecalledOperation,
        ticket: Ticket,
        engine: Weak<EngineCore>,
        elsewhere: Option<Mutex<Option<PlaceInQueue>>>,
    ) -> Self {
        let ago = |elapsed| Instant::now().checked_sub(elapsed).unwrap_or_else(Instant::now);
        let stage = match recalled.started_at {
            Some(at) => Stage::Running(Started {
                instant: ago(recalled.elapsed),
                at,
            }),
            None => Stage::NeverRan,
        };
        let cell = OperationCell {
            log: recalled.output,
            id: recalled.id,
            ticket,
            origin: recalled.origin,
            tool: recalled.tool,
            command: recalled.command,
            directory: recalled.directory,
            lifetime: recalled.lifetime,
            ready: SetOnce::new(),
            created_at: recalled.created_at,
            progress: Mutex::new(recalled.progress),
            stage: Mutex::new(stage),
            stop: SetOnce::new(),
            supervisor: Default::default(),
            outcome: SetOnce::new(),
            seen: AtomicBool::new(recalled.seen),
            read_bytes: AtomicU64::new(0),
            revision: watch::Sender::new(0),
            journal: recalled.journal,
            engine,
            elsewhere,
        };
        Self { cell: Arc::new(cell) }
    }

    /// Sets what a recalled operation ended with.
    pub(crate) fn recall_end(&self, outcome: Outcome) {
        self.cell.end(outcome);
    }

    /// Takes over what a recalled operation has come to.
    pub(crate) fn recall_progress(&self, progress: ProgressState) {
        *self.cell.progress() = progress;
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

    /// True if nothing but this handle keeps it, so that nobody follows it any more.
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

impl OperationCell {
    /// Hands the plan to the one who runs it.
    pub(super) fn begin(&self) -> Option<(Box<CommandPlan>, Started)> {
        let started = Started {
            instant: Instant::now(),
            at: SystemTime::now(),
        };
        let mut stage = self.stage.lock();
        if !matches!(*stage, Stage::Queued(_)) {
            return None;
        }
        let Stage::Queued(plan) = std::mem::replace(&mut *stage, Stage::Running(started)) else {
            return None;
        };
        drop(stage);
        self.changed();
        Some((plan, started))
    }

    /// Notes that a worker has begun to run it, or waits for one again.
    pub(super) fn set_started(&self, started: Option<Started>) {
        *self.stage.lock() = started.map_or(Stage::NeverRan, Stage::Running);
        self.changed();
    }

    pub(super) fn set_place(&self, place: Option<PlaceInQueue>) {
        if let Some(known) = &self.elsewhere {
            *known.lock() = place;
        }
    }

    /// Gives up the plan of an operation that will not run.
    pub(super) fn skip(&self) {
        *self.stage.lock() = Stage::NeverRan;
    }

    /// Notes which process looks after its command.
    pub(super) fn set_supervisor(&self, supervisor: SupervisorId) {
        *self.supervisor.lock() = supervisor;
    }

    pub(super) fn set_ready(&self) {
        // It stays as it was set first.
        self.ready.set(()).ok();
        self.changed();
    }

    pub(super) fn stop_asked(&self) -> &SetOnce<StopReason> {
        &self.stop
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, ProgressState> {
        self.progress.lock()
    }

    pub(super) fn worst_findings(&self) -> FindingPage {
        self.progress().findings().page(0, self.finding_budget())
    }

    /// Bytes of findings that no result carries.
    pub(super) fn spare_finding_bytes(&self) -> u64 {
        self.progress().findings().bytes_beyond(self.finding_budget()) as u64
    }

    /// Forgets the findings that no result carries.
    pub(super) fn forget_spare_findings(&self) {
        self.progress().forget_findings(self.finding_budget());
    }

    /// At most half of what a result may hold: output is there, too.
    fn finding_budget(&self) -> FindingBudget {
        FindingBudget {
            findings: RESULT_FINDINGS,
            bytes: self.log.page_bytes() / 2,
        }
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Tells everyone who watches that there is something new.
    pub(super) fn changed(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }

    /// Sets the one outcome; every waiter hears it.
    pub(super) fn end(&self, outcome: Outcome) {
        if self.outcome.set(Arc::new(outcome)).is_err() {
            tracing::error!(operation = %self.id, "a second outcome was dropped");
        }
        self.changed();
    }
}
