//! The findings of one run: a bounded list of the most severe, and counts that go on when the list is full.

use serde::{Deserialize, Serialize};

use super::{Finding, Severity, StreamEvent};

/// Findings of a run so far. Holds at most the number of findings it was made with: the most severe, and of equals the
/// first.
#[derive(Debug, Clone)]
pub struct FindingLog {
    /// By severity, least first; in each list the oldest first, under the number it came with.
    kept: [Vec<(usize, Finding)>; SEVERITIES],
    room: FindingRoom,
    next_number: usize,
    counts: SeverityCounts,
}

/// Number of findings of each severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeverityCounts {
    pub critical: u64,
    pub high: u64,
    pub medium: u64,
    pub low: u64,
    pub info: u64,
}

/// A stretch of the kept findings, the most severe first and equals in the order they came.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingPage {
    /// Index of the first one.
    pub from: usize,
    pub findings: Vec<Finding>,
    /// Start of the next page, if there is one.
    pub next: Option<usize>,
    /// Number of findings kept.
    pub kept: usize,
    /// Number of all findings.
    pub counts: SeverityCounts,
    /// Those of them that could not be kept.
    pub only_counted: SeverityCounts,
}

/// Findings in the order they came.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingNews {
    pub findings: Vec<Finding>,
    /// The number to ask for next.
    pub next: usize,
}

/// Limit on the part of a list that is given at once. The first finding is given whatever its size, so that a reader makes
/// progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingBudget {
    pub findings: usize,
    /// Counted as JSON.
    pub bytes: usize,
}

const SEVERITIES: usize = 5;

/// Decides which findings are kept when there is room for a limited number.
#[derive(Debug, Clone)]
pub(super) struct FindingRoom {
    max_kept: usize,
    /// By severity, least first.
    kept: [usize; SEVERITIES],
}

/// Decision about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingAdmission {
    Kept,
    /// The newest one of this lower severity goes.
    KeptInsteadOf(Severity),
    OnlyCounted,
}

impl FindingLog {
    pub fn new(max_kept: usize) -> Self {
        Self {
            kept: Default::default(),
            room: FindingRoom::new(max_kept),
            next_number: 0,
            counts: SeverityCounts::default(),
        }
    }

    /// Takes note of a finding; nothing else changes anything here.
    pub fn record(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Finding(finding) => self.push(finding.clone()),
            StreamEvent::FindingsOmitted(counts) => self.counts.add_all(counts),
            StreamEvent::Progress(_) | StreamEvent::Notice { .. } => {}
        }
    }

    pub fn push(&mut self, finding: Finding) {
        self.counts.add(finding.severity);
        match self.room.admit(finding.severity) {
            FindingAdmission::Kept => {}
            FindingAdmission::KeptInsteadOf(lower) => _ = self.kept[lower as usize].pop(),
            FindingAdmission::OnlyCounted => return,
        }
        self.kept[finding.severity as usize].push((self.next_number, finding));
        self.next_number += 1;
    }

    /// The findings kept, the most severe first and equals in the order they came.
    pub fn kept(&self) -> impl Iterator<Item = &Finding> {
        self.kept.iter().rev().flatten().map(|(_, finding)| finding)
    }

    pub fn counts(&self) -> SeverityCounts {
        self.counts
    }

    /// Number of findings that could not be kept.
    pub fn only_counted(&self) -> SeverityCounts {
        let mut counts = self.counts;
        self.kept().for_each(|finding| *counts.of(finding.severity) -= 1);
        counts
    }

    /// The number that the next finding will have.
    pub fn next_number(&self) -> usize {
        self.next_number
    }

    pub fn page(&self, from: usize, budget: FindingBudget) -> FindingPage {
        let kept = self.kept.iter().map(Vec::len).sum();
        let from = from.min(kept);
        let findings: Vec<_> = budget
            .fitting(self.kept().skip(from), |finding| finding)
            .cloned()
            .collect();
        let end = from + findings.len();
        FindingPage {
            from,
            findings,
            next: (end < kept).then_some(end),
            kept,
            counts: self.counts,
            only_counted: self.only_counted(),
        }
    }

    /// Bytes of memory taken by findings beyond the worst that fit.
    pub fn bytes_beyond(&self, budget: FindingBudget) -> usize {
        let beyond = self.kept().skip(self.count_fitting(budget));
        beyond.map(Finding::held_bytes).sum()
    }

    /// Keeps the worst that fit, and says how many others are only counted from now on.
    pub fn shorten(&mut self, budget: FindingBudget) -> usize {
        let fitting = self.count_fitting(budget);
        let (mut room, mut dropped) = (fitting, 0);
        for (list, kept) in self.kept.iter_mut().zip(&mut self.room.kept).rev() {
            dropped += list.len().saturating_sub(room);
            list.truncate(room);
            list.shrink_to_fit();
            room -= list.len();
            *kept = list.len();
        }
        dropped
    }

    fn count_fitting(&self, budget: FindingBudget) -> usize {
        budget.fitting(self.kept(), |finding| finding).count()
    }

    /// Findings with the number `from` or a later one.
    pub fn since(&self, from: usize, budget: FindingBudget) -> FindingNews {
        let newer = |list: &'_ Vec<(usize, Finding)>| list.partition_point(|(number, _)| *number < from);
        let mut news: Vec<_> = self.kept.iter().flat_map(|list| &list[newer(list)..]).collect();
        news.sort_unstable_by_key(|(number, _)| *number);
        let fitting = budget.fitting(news.iter(), |(_, finding)| finding).count();
        FindingNews {
            next: news.get(fitting).map_or(self.next_number, |(number, _)| *number),
            findings: news[..fitting]
                .iter()
                .map(|(_, finding)| finding.clone())
                .collect(),
        }
    }
}

impl FindingPage {
    /// Number of findings it does not hold, kept or not.
    pub fn left_out(&self) -> u64 {
        self.counts.total() - self.findings.len() as u64
    }
}

impl FindingRoom {
    pub(super) fn new(max_kept: usize) -> Self {
        Self {
            max_kept,
            kept: [0; SEVERITIES],
        }
    }

    pub(super) fn admit(&mut self, severity: Severity) -> FindingAdmission {
        let admission = if self.kept.iter().sum::<usize>() < self.max_kept {
            FindingAdmission::Kept
        } else {
            let lower = Severity::ALL.into_iter().take_while(|lower| *lower < severity);
            match lower.into_iter().find(|lower| self.kept[*lower as usize] > 0) {
                Some(lowest) => FindingAdmission::KeptInsteadOf(lowest),
                None => return FindingAdmission::OnlyCounted,
            }
        };
        if let FindingAdmission::KeptInsteadOf(lowest) = admission {
            self.kept[lowest as usize] -= 1;
        }
        self.kept[severity as usize] += 1;
        admission
    }
}

impl FindingBudget {
    pub const ALL: Self = Self {
        findings: usize::MAX,
        bytes: usize::MAX,
    };

    /// Number of them that fit, from the first on.
    pub fn count_fitting(self, findings: &[Finding]) -> usize {
        self.fitting(findings.iter(), |finding| finding).count()
    }

    /// The rest of the budget after them.
    pub fn without(self, findings: &[Finding]) -> Self {
        let bytes: usize = findings.iter().map(Finding::json_bytes).sum();
        Self {
            findings: self.findings.saturating_sub(findings.len()),
            bytes: self.bytes.saturating_sub(bytes),
        }
    }

    /// The first of `items` that fit.
    fn fitting<T>(
        self,
        items: impl Iterator<Item = T>,
        finding_of: impl Fn(&T) -> &Finding,
    ) -> impl Iterator<Item = T> {
        let mut room = self.bytes;
        items
            .take(self.findings)
            .enumerate()
            .map_while(move |(index, item)| {
                // Nothing needs to be measured where everything is wanted.
                let bytes = if self.bytes == usize::MAX {
                    0
                } else {
                    finding_of(&item).json_bytes()
                };
                let fits = bytes <= room || index == 0;
                room = room.saturating_sub(bytes);
                fits.then_some(item)
            })
    }
}

impl SeverityCounts {
    pub fn total(&self) -> u64 {
        self.critical + self.high + self.medium + self.low + self.info
    }

    /// `2 high, 1 info`: the most severe first, without those there are none of.
    pub fn in_words(&self) -> String {
        let mut counts = *self;
        let words = Severity::ALL.into_iter().rev().filter_map(|severity| {
            let count = *counts.of(severity);
            (count > 0).then(|| format!("{count} {}", severity.as_str()))
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn add_all(&mut self, other: &Self) {
        self.critical += other.critical;
        self.high += other.high;
        self.medium += other.medium;
        self.low += other.low;
        self.info += other.info;
    }

    pub(super) fn add(&mut self, severity: Severity) {
        *self.of(severity) += 1;
    }

    fn of(&mut self, severity: Severity) -> &mut u64 {
        match severity {
            Severity::Critical => &mut self.critical,
            Severity::High => &mut self.high,
            Severity::Medium => &mut self.medium,
            Severity::Low => &mut self.low,
            Severity::Info => &mut self.info,
        }
    }
}
