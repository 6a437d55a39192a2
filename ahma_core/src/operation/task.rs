//! The task of one operation: has its work done by a [`Worker`], and sets the outcome.

use std::{sync::Arc, time::Duration};

use crate::{
    call::{CommandPlan, Work, read_nothing},
    sandbox::{self, HintContext},
};

use super::{
    EndState, ExcerptFocus, Operation, Outcome, StepReport,
    cell::{OperationCell, Stage, Started},
    command_result::CommandResult,
    engine::EngineCore,
    run::StopReason,
    shown::Shown,
    steps,
    worker::Worker,
};

/// Reason why an operation ended without ever running.
#[derive(Debug)]
pub(super) enum NotRun {
    Stopped,
    ShuttingDown,
    QueueFull { waiting: usize },
}

/// Runs an operation that has a place, to its outcome.
pub(super) async fn run(
    operation: Operation,
    begun: Option<(Box<CommandPlan>, Started)>,
    shared: Arc<EngineCore>,
) {
    let place = RunSlot {
        operation: &operation,
        shared: &shared,
    };
    let cell = operation.cell();
    let Some((plan, started)) = begun else {
        return;
    };

    let mut worker = Worker::new(cell, &shared, &plan);
    let end = match &plan.work {
        Work::Command(command) => {
            let result = worker.command(command).await;
            WorkResult {
                hints: Hints {
                    success: command.success_hint.clone(),
                    failure: result.failure_hint(command),
                },
                ..result.into()
            }
        }
        Work::Sequence(sequence) => steps::run(&mut worker, sequence).await,
    };
    let (shown, notices) = worker.close();
    let mut outcome = outcome(cell, end, &shown, started.instant.elapsed());
    outcome.notices.extend(notices);
    let around = HintContext {
        reads_only: plan.work.reads_only(),
        ..shared.launcher.hint_context()
    };
    // The line that gives the sandbox away need not be one that is shown.
    let printed = cell.log.excerpt(ExcerptFocus::of(outcome.state)).text;
    outcome.sandbox_hint = match outcome.state {
        EndState::Completed => sandbox::hint_after_success(&printed, around),
        EndState::Failed => sandbox::hint(&printed, around),
        EndState::Cancelled | EndState::TimedOut | EndState::Interrupted => None,
    };
    if outcome.state == EndState::Completed && outcome.hint.is_none() {
        outcome.hint = read_nothing(&plan.work);
    }
    place.end(outcome);
}

/// Ends an operation that has no task.
pub(super) fn end_not_run(operation: &Operation, why: NotRun) {
    let cell = operation.cell();
    let result = match why {
        NotRun::Stopped => match cell.stop.get() {
            Some(why) => CommandResult::stopped(why),
            None => CommandResult::stopped(&StopReason::Cancelled(None)),
        },
        NotRun::ShuttingDown => CommandResult::stopped(&StopReason::shutting_down()),
        NotRun::QueueFull { waiting } => CommandResult::without_process(
            EndState::Failed,
            format!("the queue is full: {waiting} operations are waiting; try again when some have ended"),
        ),
    };
    *cell.stage.lock() = Stage::NeverRan;
    cell.end(outcome(cell, result.into(), &Shown::default(), Duration::ZERO));
}

/// End of the work of an operation.
#[derive(Debug)]
pub(super) struct WorkResult {
    pub(super) result: CommandResult,
    pub(super) steps: Vec<StepReport>,
    pub(super) hints: Hints,
}

/// Advice of tool files.
#[derive(Debug, Default)]
pub(super) struct Hints {
    pub(super) success: Option<String>,
    pub(super) failure: Option<String>,
}

impl From<CommandResult> for WorkResult {
    fn from(result: CommandResult) -> Self {
        Self {
            result,
            steps: Vec::new(),
            hints: Hints::default(),
        }
    }
}

/// A place to run. However the task ends, its operation gets an outcome and the place goes to the next.
#[derive(Debug)]
struct RunSlot<'a> {
    operation: &'a Operation,
    shared: &'a Arc<EngineCore>,
}

impl RunSlot<'_> {
    fn end(self, outcome: Outcome) {
        self.operation.cell().end(outcome);
        self.shared.release(self.operation);
        std::mem::forget(self);
    }
}

impl Drop for RunSlot<'_> {
    fn drop(&mut self) {
        let cell = self.operation.cell();
        let reason = "its task ended early, which is a mistake in the server or its sudden end";
        let result = CommandResult::without_process(EndState::Interrupted, reason.to_owned());
        cell.end(outcome(cell, result.into(), &Shown::default(), Duration::ZERO));
        // Without a panic it is the runtime that ends, and there is nothing left to run on.
        if std::thread::panicking() {
            self.shared.release(self.operation);
        }
    }
}

pub(super) fn outcome(cell: &OperationCell, end: WorkResult, shown: &Shown, duration: Duration) -> Outcome {
    let WorkResult { result, steps, hints } = end;
    let worst = cell.worst_findings();
    let whole = cell.log.excerpt(ExcerptFocus::of(result.state));
    let has_findings = worst.counts.total() > 0;
    let (reached, notices) = {
        let known = cell.progress.lock();
        (known.reached(), known.notices().to_vec())
    };
    Outcome {
        reached,
        id: cell.id.clone(),
        tool: cell.tool.clone(),
        command: cell.command.clone(),
        directory: cell.directory.clone(),
        hint: match result.state {
            EndState::Completed => hints.success,
            EndState::Failed => hints.failure,
            EndState::Cancelled | EndState::TimedOut | EndState::Interrupted => None,
        },
        state: result.state,
        exit: result.exit,
        reason: result.reason,
        duration,
        cpu: result.cpu,
        peak_memory_bytes: result.peak_memory_bytes,
        output: shown.excerpt(whole, result.state, has_findings, &cell.id),
        show: shown.show(),
        lost: cell.log.loss(),
        findings: worst.findings,
        findings_only_counted: worst.only_counted,
        finding_counts: worst.counts,
        steps,
        background: result.background,
        notices,
        sandbox_hint: None,
    }
}
