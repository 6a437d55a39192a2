//! Sequences: steps strictly in order, in one directory, into one log, until the first that does not complete.

use std::{path::Path, time::Instant};

use crate::{
    call::{Sequence, SequenceStep, SkipCondition},
    jail::ExitStatus,
};

use super::{
    Background, EndState, StepPosition, StepReport, StepState,
    command_result::CommandResult,
    scope_check::{self, Existence},
    task::{Hints, WorkResult, Worker},
};

/// Runs all steps. The result is that of the first step that did not complete, or success.
pub(super) async fn run(worker: &mut Worker<'_>, sequence: &Sequence) -> WorkResult {
    let mut whole = SequenceProgress::new(sequence);
    for (index, step) in sequence.steps.iter().enumerate() {
        if let Some(reason) = skip_reason(step.skip.as_ref(), worker.scope()).await {
            whole.steps[index].state = StepState::Skipped(reason);
            continue;
        }
        // The delay is for two steps that run: nothing has to settle before one that is left out.
        if whole.has_run
            && let Some(why) = worker.pause(sequence.delay).await
        {
            whole.end_before(index, CommandResult::stopped(&why));
            break;
        }
        let place = StepPosition {
            number: index + 1,
            of: sequence.steps.len(),
            label: step.label.clone(),
        };
        let (result, report) = run_step(worker, step, place).await;
        whole.steps[index] = report;
        if whole.add(index, step, result) == Next::Stop {
            break;
        }
    }
    WorkResult {
        result: whole.result,
        steps: whole.steps,
        hints: whole.hints,
    }
}

async fn run_step(
    worker: &mut Worker<'_>,
    step: &SequenceStep,
    place: StepPosition,
) -> (CommandResult, StepReport) {
    let header = format!("==> step {} of {}: {}\n", place.number, place.of, place.label);
    worker.log.end_line();
    worker.log.append(header.as_bytes());
    worker.cell.progress().enter_step(place);
    worker.cell.changed();

    let started = Instant::now();
    let (lines_before, _) = worker.cell.log.size();
    let result = worker.command(&step.command).await;
    let (lines_after, _) = worker.cell.log.size();
    let lines = lines_after - lines_before;
    let report = StepReport {
        state: result.state.into(),
        exit: result.exit,
        duration: started.elapsed(),
        first_line: (lines > 0).then_some(lines_before + 1),
        lines,
        ..not_run(step)
    };
    (result, report)
}

fn not_run(step: &SequenceStep) -> StepReport {
    StepReport {
        label: step.label.clone(),
        description: step.description.clone(),
        state: StepState::NotRun,
        exit: None,
        duration: Default::default(),
        first_line: None,
        lines: 0,
    }
}

/// Says why a step is left out, or nothing if it has to run. If the answer is unclear, the step runs.
async fn skip_reason(condition: Option<&SkipCondition>, scope: &Path) -> Option<String> {
    match condition? {
        SkipCondition::FileExists(path) => (scope_check::existence(scope, path).await == Existence::Present)
            .then(|| format!("{} exists", path.display())),
        SkipCondition::FileMissing(path) => (scope_check::existence(scope, path).await == Existence::Absent)
            .then(|| format!("{} is missing", path.display())),
    }
}

/// The sequence so far.
#[derive(Debug)]
struct SequenceProgress {
    result: CommandResult,
    steps: Vec<StepReport>,
    hints: Hints,
    has_run: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

impl SequenceProgress {
    fn new(sequence: &Sequence) -> Self {
        Self {
            result: CommandResult::completed(),
            steps: sequence.steps.iter().map(not_run).collect(),
            hints: Hints::default(),
            has_run: false,
        }
    }

    /// Adds the result on a step that ran.
    fn add(&mut self, index: usize, step: &SequenceStep, result: CommandResult) -> Next {
        self.has_run = true;
        self.hints = Hints {
            success: (step.command.success_hint.clone()).or(self.hints.success.take()),
            failure: step.command.failure_hint.clone(),
        };
        let background = match (self.result.background, result.background) {
            (Background::Clear, Background::Clear) => Background::Clear,
            (Background::Stopped, _) | (_, Background::Stopped) => Background::Stopped,
        };
        let cpu = [self.result.cpu, result.cpu]
            .into_iter()
            .flatten()
            .reduce(|a, b| a + b);
        let peak_memory_bytes = self.result.peak_memory_bytes.max(result.peak_memory_bytes);
        // What comes after it may rely on there being nothing to find.
        let stops_at_findings = result.has_findings && index + 1 < self.steps.len();
        let (state, reason) = if stops_at_findings {
            (
                EndState::Failed,
                Some("it has findings, and the other steps were not run".to_owned()),
            )
        } else {
            (result.state, result.reason)
        };
        let reason = reason.map(|reason| {
            format!(
                "step {} of {}, `{}`: {reason}",
                index + 1,
                self.steps.len(),
                step.label
            )
        });
        // A code that the tool file accepts is the step's own; the sequence as a whole has found something or succeeded.
        let exit = match state {
            EndState::Completed if !result.has_findings => Some(ExitStatus::Code(0)),
            _ => result.exit,
        };
        self.result = CommandResult {
            state,
            exit,
            reason,
            background,
            cpu,
            peak_memory_bytes,
            has_findings: result.has_findings,
        };
        if state == EndState::Completed {
            Next::Continue
        } else {
            Next::Stop
        }
    }

    /// Ends the sequence before a step began.
    fn end_before(&mut self, index: usize, result: CommandResult) {
        let reason = result
            .reason
            .map(|reason| format!("before step {} of {}: {reason}", index + 1, self.steps.len()));
        self.result = CommandResult {
            state: result.state,
            reason,
            ..self.result.clone()
        };
    }
}
