//! The findings of one run: a bounded list, and counts that go on when the list is full.

use serde::Serialize;

use super::{Finding, Severity, StreamEvent};

/// What a run found so far. Holds at most the number of findings it was made with.
#[derive(Debug, Clone)]
pub struct FindingLog {
    kept: Vec<Finding>,
    max_kept: usize,
    counts: SeverityCounts,
}

/// How many findings of each severity, kept or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SeverityCounts {
    pub critical: u64,
    pub high: u64,
    pub medium: u64,
    pub low: u64,
    pub info: u64,
}

/// A stretch of the kept findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingPage {
    /// Index of the first one.
    pub from: usize,
    pub findings: Vec<Finding>,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// How many are kept.
    pub kept: usize,
    /// How many there were.
    pub total: u64,
}

impl FindingLog {
    pub fn new(max_kept: usize) -> Self {
        Self {
            kept: Vec::new(),
            max_kept,
            counts: SeverityCounts::default(),
        }
    }

    /// Takes note of a finding; progress changes nothing here.
    pub fn record(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Finding(finding) => self.push(finding.clone()),
            StreamEvent::FindingsOmitted(counts) => self.counts.add_all(counts),
            StreamEvent::Progress(_) => {}
        }
    }

    pub fn push(&mut self, finding: Finding) {
        self.counts.add(finding.severity);
        if self.kept.len() < self.max_kept {
            self.kept.push(finding);
        }
    }

    /// The findings kept, oldest first.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    pub fn counts(&self) -> SeverityCounts {
        self.counts
    }

    /// How many there were that could not be kept.
    pub fn omitted(&self) -> u64 {
        self.counts.total() - self.kept.len() as u64
    }

    pub fn page(&self, from: usize, max: usize) -> FindingPage {
        let from = from.min(self.kept.len());
        let end = from.saturating_add(max).min(self.kept.len());
        FindingPage {
            from,
            findings: self.kept[from..end].to_vec(),
            next: (end < self.kept.len()).then_some(end),
            kept: self.kept.len(),
            total: self.counts.total(),
        }
    }
}

impl SeverityCounts {
    pub fn total(&self) -> u64 {
        self.critical + self.high + self.medium + self.low + self.info
    }

    fn add_all(&mut self, other: &Self) {
        self.critical += other.critical;
        self.high += other.high;
        self.medium += other.medium;
        self.low += other.low;
        self.info += other.info;
    }

    pub(super) fn add(&mut self, severity: Severity) {
        let count = match severity {
            Severity::Critical => &mut self.critical,
            Severity::High => &mut self.high,
            Severity::Medium => &mut self.medium,
            Severity::Low => &mut self.low,
            Severity::Info => &mut self.info,
        };
        *count += 1;
    }
}
