//! The state that an operation's output reveals: progress, phase, findings.

use crate::{
    call::{Command, CommandPlan, Work},
    observe::{Finding, FindingBudget, FindingLog, Progress, SeverityCounts, StreamEvent},
};

use super::{StepPosition, state::phase_in};

/// Everything known so far.
#[derive(Debug, Clone)]
pub(crate) struct ProgressState {
    pub(super) progress: Progress,
    pub(super) step: Option<StepPosition>,
    findings: FindingLog,
    /// Number of findings that were kept, and are only counted now.
    forgotten_findings: usize,
    /// Reasons why findings may be missing.
    notices: Vec<String>,
}

impl ProgressState {
    /// Keeps as many findings as the most generous rules of the plan allow.
    pub(super) fn of(plan: &CommandPlan) -> Self {
        let max_findings =
            |command: &Command| command.stream.as_ref().map_or(0, |rules| rules.max_findings());
        let max_findings = match &plan.work {
            Work::Command(command) => max_findings(command),
            Work::Sequence(sequence) => sequence
                .steps
                .iter()
                .map(|step| max_findings(&step.command))
                .max()
                .unwrap_or(0),
        };
        Self::new(max_findings)
    }

    pub(super) fn take(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Progress(progress) => self.advance(progress),
            StreamEvent::Finding(_) | StreamEvent::FindingsOmitted(_) => self.findings.record(&event),
            // The steps of a sequence may have the same to say.
            StreamEvent::Notice { text } if self.notices.contains(&text) => {}
            StreamEvent::Notice { text } => self.notices.push(text),
        }
    }

    pub(super) fn counts(&self) -> SeverityCounts {
        self.findings.counts()
    }

    /// A step of a sequence begins.
    pub(super) fn enter_step(&mut self, step: StepPosition) {
        self.progress.phase = None;
        self.progress.eta_seconds = None;
        self.raise(whole_percent(&step, 0.0));
        self.step = Some(step);
    }

    /// Progress of the whole, of which a step is a part.
    pub(super) fn reached(&self) -> Progress {
        Progress {
            phase: phase_in(self.step.as_ref(), self.progress.phase.as_deref()),
            ..self.progress.clone()
        }
    }

    pub(super) fn notices(&self) -> &[String] {
        &self.notices
    }

    pub(super) fn findings(&self) -> &FindingLog {
        &self.findings
    }

    /// Forgets all but the worst findings.
    pub(super) fn forget_findings(&mut self, budget: FindingBudget) {
        self.forgotten_findings += self.findings.shorten(budget);
    }

    pub(super) fn forgotten_findings(&self) -> usize {
        self.forgotten_findings
    }

    pub(super) fn new(max_findings: usize) -> Self {
        Self {
            progress: Progress::default(),
            step: None,
            findings: FindingLog::new(max_findings),
            forgotten_findings: 0,
            notices: Vec::new(),
        }
    }

    fn advance(&mut self, progress: Progress) {
        if let Some(percent) = progress.percent {
            match &self.step {
                Some(step) => self.raise(whole_percent(step, percent)),
                None => self.raise(percent),
            }
        }
        self.progress = Progress {
            percent: self.progress.percent,
            ..progress
        };
    }

    fn raise(&mut self, percent: f64) {
        let percent = percent.clamp(0.0, 100.0);
        self.progress.percent = Some(self.progress.percent.map_or(percent, |shown| shown.max(percent)));
    }
}

/// Progress and findings of an operation when it was written down.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecalledProgress {
    pub(crate) progress: Progress,
    /// The most severe first.
    pub(crate) findings: Vec<Finding>,
    pub(crate) only_counted: SeverityCounts,
    pub(crate) notices: Vec<String>,
}

impl From<RecalledProgress> for ProgressState {
    fn from(recalled: RecalledProgress) -> Self {
        let mut state = Self::new(recalled.findings.len());
        for finding in recalled.findings {
            state.findings.push(finding);
        }
        if recalled.only_counted.total() > 0 {
            state
                .findings
                .record(&StreamEvent::FindingsOmitted(recalled.only_counted));
        }
        state.progress = recalled.progress;
        state.notices = recalled.notices;
        state
    }
}

/// A step's percent as a share of its sequence, all steps weighing the same.
fn whole_percent(step: &StepPosition, percent: f64) -> f64 {
    ((step.number - 1) as f64 * 100.0 + percent.clamp(0.0, 100.0)) / step.of as f64
}

#[cfg(test)]
#[path = "progress_state_tests.rs"]
mod tests;
