//! Sequences: steps in order, in one directory, into one log, until the first that does not complete. Those that are marked
//! parallel run at the same time as the one before them.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    call::{Sequence, SequenceStep, SkipCondition},
    jail::ExitStatus,
};

use super::{
    Background, EndState, StepPosition, StepReport, StepState,
    command_result::CommandResult,
    scope_check::{self, Existence},
    task::{Hints, WorkResult},
    worker::Worker,
};

/// Runs all steps. The result is that of the first step that did not complete, or success.
pub(super) async fn run(worker: &mut Worker<'_>, sequence: &Sequence) -> WorkResult {
    let mut whole = SequenceProgress::new(sequence);
    let mut first = 0;
    for group in sequence.steps.chunk_by(|_, next| next.parallel) {
        let mut running = Vec::new();
        for (index, step) in (first..).zip(group) {
            match skip_reason(step.skip.as_ref(), worker.scope()).await {
                Some(reason) => whole.steps[index].state = StepState::Skipped(reason),
                None => running.push((index, step)),
            }
        }
        first += group.len();
        let Some(&(index, step)) = running.first() else {
            continue;
        };
        // The delay is for two steps that run: nothing has to settle before one that is left out.
        if whole.has_run
            && let Some(why) = worker.pause(sequence.delay).await
        {
            whole.end_before(index, CommandResult::stopped(&why));
            break;
        }
        let ended = if running.len() == 1 {
            let place = position(sequence, index);
            vec![run_step(worker, step, place).await]
        } else {
            run_together(worker, sequence, &running).await
        };
        let mut next = Next::Continue;
        for ((index, step), (result, report)) in running.into_iter().zip(ended) {
            whole.steps[index] = report;
            if whole.add(index, step, result) == Next::Stop {
                next = Next::Stop;
            }
        }
        if next == Next::Stop {
            break;
        }
    }
    whole.end()
}

fn position(sequence: &Sequence, index: usize) -> StepPosition {
    StepPosition {
        number: index + 1,
        of: sequence.steps.len(),
        label: sequence.steps[index].label.clone(),
    }
}

/// Runs steps at the same time. What each of them printed follows in the log when all have ended.
async fn run_together(
    worker: &mut Worker<'_>,
    sequence: &Sequence,
    steps: &[(usize, &SequenceStep)],
) -> Vec<(CommandResult, StepReport)> {
    if let Some((index, _)) = steps.last() {
        worker.cell.progress.lock().enter_step(position(sequence, *index));
        worker.cell.changed();
    }
    let started = Instant::now();
    let mut parts: Vec<Worker<'_>> = steps.iter().map(|_| worker.part()).collect();
    let running = parts.iter_mut().zip(steps).map(async |(part, (_, step))| {
        let result = part.command(&step.command).await;
        (result, started.elapsed())
    });
    let results = futures::future::join_all(running).await;
    let mut ended = Vec::new();
    for ((part, (index, step)), (result, duration)) in parts.into_iter().zip(steps).zip(results) {
        let lines_before = begin_in_log(worker, &position(sequence, *index));
        worker.take_part(part).await;
        let report = step_report(worker, step, &result, duration, lines_before);
        ended.push((result, report));
    }
    ended
}

/// Writes the header of a step, and returns the number of lines in the log so far.
fn begin_in_log(worker: &mut Worker<'_>, place: &StepPosition) -> u64 {
    let header = format!("==> {}\n", place.in_words());
    worker.log.end_line();
    worker.log.append(header.as_bytes());
    worker.cell.log.size().0
}

fn step_report(
    worker: &Worker<'_>,
    step: &SequenceStep,
    result: &CommandResult,
    duration: Duration,
    lines_before: u64,
) -> StepReport {
    let (lines_after, _) = worker.cell.log.size();
    let lines = lines_after - lines_before;
    StepReport {
        state: StepState::Ended(result.state),
        exit: result.exit,
        duration,
        first_line: (lines > 0).then_some(lines_before + 1),
        lines,
        ..not_run(step)
    }
}

async fn run_step(
    worker: &mut Worker<'_>,
    step: &SequenceStep,
    place: StepPosition,
) -> (CommandResult, StepReport) {
    let lines_before = begin_in_log(worker, &place);
    worker.cell.progress.lock().enter_step(place);
    worker.cell.changed();
    let started = Instant::now();
    let result = worker.command(&step.command).await;
    let report = step_report(worker, step, &result, started.elapsed(), lines_before);
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

/// Reason for leaving a step out; `None` if it has to run, also if the answer is unclear.
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
    /// The first failure, with its hint, and the number of them, after which the sequence went on.
    first_failure: Option<(CommandResult, Option<String>)>,
    failures: usize,
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
            first_failure: None,
            failures: 0,
        }
    }

    fn end(mut self) -> WorkResult {
        if let Some((first, hint)) = self.first_failure
            && self.result.state == EndState::Completed
        {
            let others = match self.failures {
                1 => String::new(),
                number => format!(
                    "{number} of {} steps failed; the first of them: ",
                    self.steps.len()
                ),
            };
            self.result = CommandResult {
                state: first.state,
                exit: first.exit,
                reason: first.reason.map(|reason| format!("{others}{reason}")),
                ..self.result
            };
            self.hints.failure = hint;
        }
        WorkResult {
            result: self.result,
            steps: self.steps,
            hints: self.hints,
        }
    }

    /// Adds the result on a step that ran.
    fn add(&mut self, index: usize, step: &SequenceStep, result: CommandResult) -> Next {
        self.has_run = true;
        self.hints = Hints {
            success: (step.command.success_hint.clone()).or(self.hints.success.take()),
            failure: result.failure_hint(&step.command),
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
        match state {
            EndState::Completed => Next::Continue,
            EndState::Failed if step.continue_on_failure => {
                self.failures += 1;
                let failure = (self.result.clone(), self.hints.failure.clone());
                self.first_failure.get_or_insert(failure);
                self.result.state = EndState::Completed;
                self.result.reason = None;
                Next::Continue
            }
            EndState::Failed | EndState::Cancelled | EndState::TimedOut | EndState::Interrupted => Next::Stop,
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
