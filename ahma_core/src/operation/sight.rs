//! What the output of an operation told about its work: progress, phase, findings.

use serde::Serialize;

use crate::observe::{Finding, Progress, Severity, StreamEvent};

use super::StepPosition;

/// How many findings of each severity, kept or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SeverityCounts {
    pub critical: u64,
    pub high: u64,
    pub medium: u64,
    pub low: u64,
    pub info: u64,
}

/// A stretch of the findings of an operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingPage {
    /// Index of the first one.
    pub from: usize,
    pub findings: Vec<Finding>,
    /// Where the next page begins, if there is one.
    pub next: Option<usize>,
    /// How many are kept.
    pub kept: usize,
    /// How many there were.
    pub total: u64,
}

/// Findings kept per operation; a result shows fewer, and past this only the counts go on.
const MAX_FINDINGS: usize = 1000;

/// Everything seen so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Sight {
    pub(super) progress: Progress,
    pub(super) step: Option<StepPosition>,
    pub(super) counts: SeverityCounts,
    pub(super) findings: Vec<Finding>,
}

impl Sight {
    pub(super) fn take(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Progress(progress) => self.advance(progress),
            StreamEvent::Finding(finding) => {
                self.counts.add(finding.severity);
                if self.findings.len() < MAX_FINDINGS {
                    self.findings.push(finding);
                }
            }
        }
    }

    /// A step of a sequence begins.
    pub(super) fn enter_step(&mut self, step: StepPosition) {
        self.progress.phase = None;
        self.progress.eta_seconds = None;
        self.raise(whole_percent(&step, 0.0));
        self.step = Some(step);
    }

    pub(super) fn page(&self, from: usize, max: usize) -> FindingPage {
        let from = from.min(self.findings.len());
        let end = from.saturating_add(max).min(self.findings.len());
        FindingPage {
            from,
            findings: self.findings[from..end].to_vec(),
            next: (end < self.findings.len()).then_some(end),
            kept: self.findings.len(),
            total: self.counts.total(),
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

/// A step's percent as a share of its sequence, all steps weighing the same.
fn whole_percent(step: &StepPosition, percent: f64) -> f64 {
    ((step.number - 1) as f64 * 100.0 + percent.clamp(0.0, 100.0)) / step.of as f64
}

impl SeverityCounts {
    pub fn total(&self) -> u64 {
        self.critical + self.high + self.medium + self.low + self.info
    }

    fn add(&mut self, severity: Severity) {
        *match severity {
            Severity::Critical => &mut self.critical,
            Severity::High => &mut self.high,
            Severity::Medium => &mut self.medium,
            Severity::Low => &mut self.low,
            Severity::Info => &mut self.info,
        } += 1;
    }
}

#[cfg(test)]
#[path = "sight_tests.rs"]
mod tests;
