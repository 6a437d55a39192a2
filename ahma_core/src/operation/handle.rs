//! The handle of one operation.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::{SetOnce, watch};

use crate::{
    call::CommandPlan,
    observe::{FindingBudget, FindingNews, FindingPage},
};

use super::{
    OperationId, Outcome, OutputLog, Owner, Snapshot, State, engine::Shared, queue::Ticket, run::StopReason,
    sight::Sight,
};

/// Findings that a result carries itself; the rest is read in pages.
const RESULT_FINDINGS: usize = 50;

/// One run of one plan. Cheap to clone; all clones are the same operation, and dropping them ends nothing.
#[derive(Debug, Clone)]
pub struct Operation {
    cell: Arc<Cell>,
}

/// What the handles and the task of an operation share.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) id: OperationId,
    pub(super) ticket: Ticket,
    owner: Owner,
    pub(super) tool: String,
    /// What it runs, on one short line.
    pub(super) command: String,
    pub(super) directory: PathBuf,
    pub(super) log: OutputLog,
    created_at: SystemTime,
    life: Mutex<Life>,
    sight: Mutex<Sight>,
    /// The first request to stop wins.
    stop: SetOnce<StopReason>,
    /// Set once, as the last thing that happens to an operation.
    outcome: SetOnce<Arc<Outcome>>,
    seen: AtomicBool,
    revision: watch::Sender<u64>,
    engine: Weak<Shared>,
}

/// What exists before the outcome does.
#[derive(Debug)]
enum Life {
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

    /// For whom it runs.
    pub fn owner(&self) -> &Owner {
        &self.cell.owner
    }

    /// How the operation stands now.
    pub fn snapshot(&self) -> Snapshot {
        let cell = &*self.cell;
        let outcome = cell.outcome.get();
        let started = match &*lock(&cell.life) {
            Life::Running(started) => Some(*started),
            Life::Queued(_) | Life::NeverRan => None,
        };
        let state = match (outcome, started) {
            (Some(outcome), _) => outcome.state.into(),
            (None, Some(_)) => State::Running,
            (None, None) => State::Queued,
        };
        let elapsed = match (outcome, started) {
            (Some(outcome), _) => outcome.duration,
            (None, Some(started)) => started.instant.elapsed(),
            (None, None) => Duration::ZERO,
        };
        let engine = cell.engine.upgrade().filter(|_| state == State::Queued);
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
        let (output_lines, output_bytes) = cell.log.size();
        let sight = lock(&cell.sight);
        Snapshot {
            id: cell.id.clone(),
            tool: cell.tool.clone(),
            command: cell.command.clone(),
            directory: cell.directory.clone(),
            state,
            queue_position,
            created_at: cell.created_at,
            started_at: started.map(|started| started.at),
            elapsed,
            progress: sight.progress.clone(),
            step: sight.step.clone(),
            newest_line: cell.log.newest_line(),
            output_lines,
            output_bytes,
            finding_counts: sight.counts(),
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

    /// Notes that a client was given the outcome, so that it may be forgotten before those nobody has seen.
    pub fn mark_seen(&self) {
        self.cell.seen.store(true, Ordering::Relaxed);
    }

    /// Whether a client was given the outcome.
    pub fn is_seen(&self) -> bool {
        self.cell.is_seen()
    }

    /// Stops the operation and waits until all its processes are gone. An operation that has ended stays as it ended;
    /// dropping the future does not take the request back.
    pub async fn cancel(&self, reason: Option<String>) -> Arc<Outcome> {
        self.request_stop(StopReason::Cancelled(reason));
        self.outcome().await
    }

    /// What it printed so far.
    pub fn output(&self) -> &OutputLog {
        &self.cell.log
    }

    /// A page of the findings, the most severe first, from index `from` on.
    pub fn findings(&self, from: usize, budget: FindingBudget) -> FindingPage {
        lock(&self.cell.sight).findings().page(from, budget)
    }

    /// The findings in the order they came, from number `from` on.
    pub fn findings_since(&self, from: usize, budget: FindingBudget) -> FindingNews {
        lock(&self.cell.sight).findings().since(from, budget)
    }

    /// How many findings were kept and are only counted now, because those of ended operations took too much memory.
    pub fn forgotten_findings(&self) -> usize {
        lock(&self.cell.sight).forgotten_findings()
    }

    /// The number that the next finding will have.
    pub fn next_finding(&self) -> usize {
        lock(&self.cell.sight).findings().next_number()
    }

    /// The findings that a result carries itself: the worst ones.
    pub fn worst_findings(&self) -> FindingPage {
        self.cell.worst_findings()
    }

    /// How many findings one message carries.
    pub fn finding_budget(&self) -> FindingBudget {
        self.cell.finding_budget()
    }

    pub(super) fn queued(
        (id, ticket): (OperationId, Ticket),
        owner: Owner,
        plan: CommandPlan,
        result_bytes: usize,
        engine: Weak<Shared>,
    ) -> Self {
        let cell = Cell {
            log: OutputLog::new(id.clone(), result_bytes),
            id,
            ticket,
            owner,
            tool: plan.tool.clone(),
            command: plan.in_short(),
            directory: plan.directory.clone(),
            created_at: SystemTime::now(),
            sight: Mutex::new(Sight::of(&plan)),
            life: Mutex::new(Life::Queued(Box::new(plan))),
            stop: SetOnce::new(),
            outcome: SetOnce::new(),
            seen: AtomicBool::new(false),
            revision: watch::Sender::new(0),
            engine,
        };
        Self { cell: Arc::new(cell) }
    }

    pub(super) fn cell(&self) -> &Cell {
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

impl Cell {
    /// Hands the plan to the one who runs it.
    pub(super) fn begin(&self) -> Option<(Box<CommandPlan>, Started)> {
        let started = Started {
            instant: Instant::now(),
            at: SystemTime::now(),
        };
        let mut life = lock(&self.life);
        if !matches!(*life, Life::Queued(_)) {
            return None;
        }
        let Life::Queued(plan) = std::mem::replace(&mut *life, Life::Running(started)) else {
            return None;
        };
        drop(life);
        self.changed();
        Some((plan, started))
    }

    /// Gives up the plan of an operation that will not run.
    pub(super) fn skip(&self) {
        *lock(&self.life) = Life::NeverRan;
    }

    pub(super) fn stop_asked(&self) -> &SetOnce<StopReason> {
        &self.stop
    }

    pub(super) fn sight(&self) -> MutexGuard<'_, Sight> {
        lock(&self.sight)
    }

    pub(super) fn worst_findings(&self) -> FindingPage {
        self.sight().findings().page(0, self.finding_budget())
    }

    /// How much memory is taken by findings that no result carries.
    pub(super) fn spare_finding_bytes(&self) -> u64 {
        self.sight().findings().bytes_beyond(self.finding_budget()) as u64
    }

    /// Forgets the findings that no result carries.
    pub(super) fn forget_spare_findings(&self) {
        self.sight().forget_findings(self.finding_budget());
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No critical section here leaves a value half-changed, so poison carries no information.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
