//! The events of an observer until they are collected.

use std::{
    collections::HashSet,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use super::{
    Digest, Finding, RunContext, SeverityCounts, StreamEvent, StreamRules,
    findings::{FindingAdmission, FindingRoom},
    progress::ProgressMeter,
    rules::{RuleContext, Sighting},
};

/// Findings after this many are not compared with those before.
const MAX_REMEMBERED: usize = 10_000;

/// Events of what was seen. Bounds the findings: one that a more severe one may still replace is reported all the same.
#[derive(Debug)]
pub(super) struct Notes {
    run: Arc<RunContext>,
    pub(super) digest: Digest,
    pub(super) meter: ProgressMeter,
    room: FindingRoom,
    /// Hashes of what was found at a place, because programs repeat themselves when they sum up.
    found: HashSet<u64>,
    pub(super) events: Vec<StreamEvent>,
    omitted: SeverityCounts,
    gaps: Vec<Gap>,
}

/// Reason for which findings may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    LongLine { max_bytes: usize },
    LongDocument { max_bytes: usize },
    CutOffDocument,
    LargeElement,
}

impl Notes {
    pub(super) fn new(run: RunContext, rules: &StreamRules) -> Self {
        Self {
            run: Arc::new(run),
            digest: Digest::default(),
            meter: ProgressMeter::new(Arc::clone(&rules.phases)),
            room: FindingRoom::new(rules.limits.findings),
            found: HashSet::new(),
            events: Vec::new(),
            omitted: SeverityCounts::default(),
            gaps: Vec::new(),
        }
    }

    /// Lets rules look at a piece, and takes in what they see.
    pub(super) fn watch<T>(&mut self, look: impl FnOnce(&mut RuleContext<'_>) -> T) -> T {
        self.watch_with(Self::add, look)
    }

    /// The same with another way to take it in.
    pub(super) fn watch_with<T>(
        &mut self,
        mut take: impl FnMut(&mut Self, Sighting),
        look: impl FnOnce(&mut RuleContext<'_>) -> T,
    ) -> T {
        let run = Arc::clone(&self.run);
        look(&mut RuleContext {
            arguments: &run.arguments,
            note: &mut |sighting| take(self, sighting),
        })
    }

    pub(super) fn add(&mut self, sighting: Sighting) {
        match sighting {
            Sighting::Progress(reading) => self
                .events
                .extend(self.meter.apply(reading).map(StreamEvent::Progress)),
            Sighting::Finding(finding) if self.is_repeated(&finding) => {}
            Sighting::Finding(mut finding) => match self.room.admit(finding.severity) {
                FindingAdmission::Kept | FindingAdmission::KeptInsteadOf(_) => {
                    self.run.settle(&mut finding);
                    self.events.push(StreamEvent::Finding(finding));
                }
                FindingAdmission::OnlyCounted => self.omitted.add(finding.severity),
            },
            Sighting::Summary(line) => self.digest.add_summary(line),
        }
    }

    /// Two findings without a place may be two things.
    fn is_repeated(&mut self, finding: &Finding) -> bool {
        let Finding {
            severity,
            id,
            title,
            location: Some(location),
            ..
        } = finding
        else {
            return false;
        };
        let mut hasher = DefaultHasher::new();
        (severity, id, title, location).hash(&mut hasher);
        self.found.len() < MAX_REMEMBERED && !self.found.insert(hasher.finish())
    }

    /// An unfinished line is looked at again when it is finished: only what may be said twice is taken from it.
    pub(super) fn add_progress_of_tail(&mut self, sighting: Sighting) {
        if let Sighting::Progress(reading) = sighting
            && !reading.is_counted
        {
            self.add(Sighting::Progress(reading));
        }
    }

    pub(super) fn add_gap(&mut self, gap: Gap) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
            self.events.push(StreamEvent::Notice {
                text: gap.to_string(),
            });
        }
    }

    pub(super) fn take(&mut self) -> Vec<StreamEvent> {
        let omitted = std::mem::take(&mut self.omitted);
        if omitted.total() > 0 {
            self.events.push(StreamEvent::FindingsOmitted(omitted));
        }
        std::mem::take(&mut self.events)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, advice) = match self {
            Self::LongLine { max_bytes } => (
                format!("The end of a line longer than {max_bytes} bytes was not read"),
                " (`max_frame_bytes` in the tool file)",
            ),
            Self::LongDocument { max_bytes } => (
                format!("A document longer than {max_bytes} bytes was not read"),
                " (`max_document_bytes` in the tool file)",
            ),
            Self::CutOffDocument => (
                "The document ended before its end, and only what was whole in it was read".to_owned(),
                "",
            ),
            Self::LargeElement => (
                "An XML element was too large to be held, and only parts of it were read".to_owned(),
                "",
            ),
        };
        write!(f, "{what}{advice}; findings may be missing.")
    }
}
