//! The state of one operation, which its handles and its task share; and the parts from which it can be made again.

use std::{
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use tokio::sync::{SetOnce, watch};

use crate::{
    call::{CommandPlan, Lifetime},
    jail::SupervisorId,
    observe::{FindingBudget, FindingPage},
};

use super::{
    CallOrigin, Journal, OperationId, Outcome, OutputLog, engine::EngineCore, progress_state::ProgressState,
    queue::Ticket, run::StopReason,
};

/// Findings that a result carries itself; the rest is read in pages.
const RESULT_FINDINGS: usize = 50;

/// State that the handles and the task of an operation share.
#[derive(Debug)]
pub(super) struct OperationCell {
    pub(super) id: OperationId,
    pub(super) ticket: Ticket,
    pub(super) origin: CallOrigin,
    pub(super) tool: String,
    /// The command on one short line.
    pub(super) command: String,
    pub(super) directory: PathBuf,
    pub(super) log: OutputLog,
    pub(super) created_at: SystemTime,
    pub(super) stage: Mutex<Stage>,
    pub(super) progress: Mutex<ProgressState>,
    /// The first request to stop wins.
    pub(super) stop: SetOnce<StopReason>,
    /// Set once, as the last thing that happens to an operation.
    pub(super) outcome: SetOnce<Arc<Outcome>>,
    pub(super) seen: AtomicBool,
    /// Bytes of output that its client has been given.
    pub(super) read_bytes: AtomicU64,
    pub(super) lifetime: Lifetime,
    /// Set when the output says that an operation which keeps running is ready.
    pub(super) ready: SetOnce<()>,
    /// Of the command that runs, or ran last.
    pub(super) supervisor: Mutex<SupervisorId>,
    pub(super) revision: watch::Sender<u64>,
    /// Notified when its result is collected.
    pub(super) journal: Option<Arc<dyn Journal>>,
    pub(super) engine: Weak<EngineCore>,
    /// For an operation that a worker of the cluster runs: why it has not begun.
    pub(super) elsewhere: Option<Mutex<Option<PlaceInQueue>>>,
}

/// Place of an operation of the cluster that waits, and the reason.
#[derive(Debug, Clone)]
pub(crate) struct PlaceInQueue {
    pub(crate) position: usize,
    pub(crate) why: String,
}

/// Life of an operation before its outcome.
#[derive(Debug)]
pub(super) enum Stage {
    Queued(Box<CommandPlan>),
    Running(Started),
    /// Ended without ever running.
    NeverRan,
}

/// Beginning of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Started {
    pub(super) instant: Instant,
    pub(super) at: SystemTime,
}

impl Started {
    pub(super) fn ago(elapsed: Duration, at: SystemTime) -> Self {
        let now = Instant::now();
        Self {
            instant: now.checked_sub(elapsed).unwrap_or(now),
            at,
        }
    }
}

/// Everything of an operation but its outcome.
#[derive(Debug)]
pub(crate) struct RecalledOperation {
    pub(crate) call: RecordedCall,
    pub(crate) started_at: Option<SystemTime>,
    pub(crate) elapsed: Duration,
    pub(crate) progress: ProgressState,
    pub(crate) output: OutputLog,
}

/// The parts of an operation that are known before it runs.
#[derive(Debug)]
pub(crate) struct RecordedCall {
    pub(crate) id: OperationId,
    pub(crate) origin: CallOrigin,
    pub(crate) tool: String,
    /// The command on one short line.
    pub(crate) command: String,
    pub(crate) directory: PathBuf,
    pub(crate) lifetime: Lifetime,
    pub(crate) created_at: SystemTime,
    /// A client was given its result.
    pub(crate) seen: bool,
    /// Notified when its result is collected.
    pub(crate) journal: Option<Arc<dyn Journal>>,
}

impl OperationCell {
    /// An operation that no engine has.
    pub(super) fn new(call: RecordedCall, stage: Stage, progress: ProgressState, log: OutputLog) -> Self {
        Self {
            id: call.id,
            ticket: Ticket::MAX,
            origin: call.origin,
            tool: call.tool,
            command: call.command,
            directory: call.directory,
            log,
            created_at: call.created_at,
            stage: Mutex::new(stage),
            progress: Mutex::new(progress),
            stop: SetOnce::new(),
            outcome: SetOnce::new(),
            seen: AtomicBool::new(call.seen),
            read_bytes: AtomicU64::new(0),
            lifetime: call.lifetime,
            ready: SetOnce::new(),
            supervisor: Mutex::default(),
            revision: watch::Sender::new(0),
            journal: call.journal,
            engine: Weak::new(),
            elsewhere: None,
        }
    }

    pub(super) fn recalled(recalled: RecalledOperation) -> Self {
        let started = recalled.started_at.map(|at| Started::ago(recalled.elapsed, at));
        let stage = started.map_or(Stage::NeverRan, Stage::Running);
        Self::new(recalled.call, stage, recalled.progress, recalled.output)
    }

    /// Takes the plan out, to be run.
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

    pub(super) fn set_ready(&self) {
        // It stays as it was set first.
        self.ready.set(()).ok();
        self.changed();
    }

    pub(super) fn worst_findings(&self) -> FindingPage {
        self.progress.lock().findings().page(0, self.finding_budget())
    }

    /// Bytes of findings that no result carries.
    pub(super) fn spare_finding_bytes(&self) -> u64 {
        self.progress
            .lock()
            .findings()
            .bytes_beyond(self.finding_budget()) as u64
    }

    /// Forgets the findings that no result carries.
    pub(super) fn forget_spare_findings(&self) {
        self.progress.lock().forget_findings(self.finding_budget());
    }

    /// At most half of what a result may hold: output is there, too.
    pub(super) fn finding_budget(&self) -> FindingBudget {
        FindingBudget {
            findings: RESULT_FINDINGS,
            bytes: self.log.page_bytes() / 2,
        }
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Wakes the watchers.
    pub(super) fn changed(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }

    /// Sets the one outcome, which every waiter gets.
    pub(super) fn end(&self, outcome: Outcome) {
        if self.outcome.set(Arc::new(outcome)).is_err() {
            tracing::error!(operation = %self.id, "a second outcome was dropped");
        }
        self.changed();
    }
}
