//! Sequences: steps strictly in order, in one directory, into one log, until the first that does not complete.

use std::{path::Path, time::Instant};

use crate::call::{Sequence, SequenceStep, SkipCondition};

use super::{
    Background, EndState, StepPosition, StepReport, StepState,
    look::{self, Found},
    task::{End, Worker},
    verdict::Verdict,
};

/// Runs all steps. The verdict is that of the first step that did not complete, or success.
pub(super) async fn run(worker: &mut Worker<'_>, sequence: &Sequence) -> End {
    let mut whole = Whole::new(sequence);
    for (index, step) in sequence.steps.iter().enumerate() {
        if let Some(reason) = skip_reason(step.skip.as_ref(), worker.scope()).await {
            whole.steps[index].state = StepState::Skipped(reason);
            continue;
        }
        // The delay is for two steps that run: nothing has to settle before one that is left out.
        if whole.has_run
            && let Some(why) = worker.pause(sequence.delay).await
        {
            whole.end_before(index, Verdict::stopped(&why));
            break;
        }
        let place = StepPosition {
            number: index + 1,
            of: sequence.steps.len(),
            label: step.label.clone(),
        };
        let (verdict, report) = run_step(worker, step, place).await;
        whole.steps[index] = report;
        if whole.add(index, step, verdict) == Next::Stop {
            break;
        }
    }
    End {
        verdict: whole.verdict,
        steps: whole.steps,
        success_hint: whole.success_hint,
    }
}

async fn run_step(
    worker: &mut Worker<'_>,
    step: &SequenceStep,
    place: StepPosition,
) -> (Verdict, StepReport) {
    let header = format!("==> step {} of {}: {}\n", place.number, place.of, place.label);
    worker.log.end_line();
    worker.log.append(header.as_bytes());
    worker.cell.sight().enter_step(place);
    worker.cell.changed();

    let started = Instant::now();
    let (lines_before, _) = worker.cell.log.size();
    let verdict = worker.command(&step.command).await;
    let (lines_after, _) = worker.cell.log.size();
    let lines = lines_after - lines_before;
    let report = StepReport {
        state: verdict.state.into(),
        exit: verdict.exit,
        duration: started.elapsed(),
        first_line: (lines > 0).then_some(lines_before + 1),
        lines,
        ..not_run(step)
    };
    (verdict, report)
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
        SkipCondition::FileExists(path) => {
            (look::find(scope, path).await == Found::Something).then(|| format!("{} exists", path.display()))
        }
        SkipCondition::FileMissing(path) => (look::find(scope, path).await == Found::Nothing)
            .then(|| format!("{} is missing", path.display())),
    }
}

/// The sequence so far.
#[derive(Debug)]
struct Whole {
    verdict: Verdict,
    steps: Vec<StepReport>,
    success_hint: Option<String>,
    has_run: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

impl Whole {
    fn new(sequence: &Sequence) -> Self {
        Self {
            verdict: Verdict::completed(),
            steps: sequence.steps.iter().map(not_run).collect(),
            success_hint: None,
            has_run: false,
        }
    }

    /// Adds the verdict on a step that ran.
    fn add(&mut self, index: usize, step: &SequenceStep, verdict: Verdict) -> Next {
        self.has_run = true;
        if let Some(hint) = &step.command.success_hint {
            self.success_hint = Some(hint.clone());
        }
        let background = match (self.verdict.background, verdict.background) {
            (Background::Clear, Background::Clear) => Background::Clear,
            (Background::Stopped, _) | (_, Background::Stopped) => Background::Stopped,
        };
        let cpu = [self.verdict.cpu, verdict.cpu]
            .into_iter()
            .flatten()
            .reduce(|a, b| a + b);
        let peak_memory_bytes = self.verdict.peak_memory_bytes.max(verdict.peak_memory_bytes);
        let state = verdict.state;
        let reason = verdict.reason.map(|reason| {
            format!(
                "step {} of {}, `{}`: {reason}",
                index + 1,
                self.steps.len(),
                step.label
            )
        });
        self.verdict = Verdict {
            state,
            exit: verdict.exit,
            reason,
            background,
            cpu,
            peak_memory_bytes,
        };
        if state == EndState::Completed {
            Next::Continue
        } else {
            Next::Stop
        }
    }

    /// Ends the sequence before a step began.
    fn end_before(&mut self, index: usize, verdict: Verdict) {
        let reason = verdict
            .reason
            .map(|reason| format!("before step {} of {}: {reason}", index + 1, self.steps.len()));
        self.verdict = Verdict {
            state: verdict.state,
            reason,
            ..self.verdict.clone()
        };
    }
}
