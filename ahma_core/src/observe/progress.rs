//! Combines the progress that single pieces of output report.

use std::sync::Arc;

use super::{Progress, rules::ProgressReading};

/// A phase of the work and its place in the whole, both in percent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Phase {
    /// Compared without regard to case.
    pub(super) name: String,
    pub(super) start: f64,
    pub(super) share: f64,
}

/// Progress of one run. Percent only rises, whatever the readings say.
#[derive(Debug)]
pub(super) struct ProgressMeter {
    phases: Arc<[Phase]>,
    /// Index of the phase the run is in, once it was named.
    reached: Option<usize>,
    counted: u64,
    now: Progress,
}

impl ProgressMeter {
    pub(super) fn new(phases: Arc<[Phase]>) -> Self {
        Self {
            phases,
            reached: None,
            counted: 0,
            now: Progress::default(),
        }
    }

    /// Takes in a reading; gives the new state if it says anything new.
    pub(super) fn apply(&mut self, reading: ProgressReading) -> Option<Progress> {
        let mut next = self.now.clone();
        if let Some(text) = reading.phase {
            self.enter_phase_of(&text, &mut next);
            next.phase = Some(text);
        }
        let counts_now = reading.is_counted || reading.current.is_some() || reading.total.is_some();
        if reading.is_counted {
            self.counted += 1;
            next.current = Some(self.counted);
        }
        next.current = reading.current.or(next.current);
        next.total = reading.total.or(next.total);
        let own_percent = reading
            .percent
            .or_else(|| counted_percent(&next).filter(|_| counts_now));
        next.percent = self.overall(own_percent).map_or(next.percent, |percent| {
            let percent = (percent.clamp(0.0, 100.0) * 100.0).round() / 100.0;
            Some(percent.max(next.percent.unwrap_or(0.0)))
        });
        // An estimate is only true for the moment it was made.
        next.eta_seconds = reading.eta_seconds;
        if next == self.now {
            return None;
        }
        self.now = next.clone();
        Some(next)
    }

    fn enter_phase_of(&mut self, text: &str, next: &mut Progress) {
        let starts_with = |name: &str| {
            text.get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        let candidates = self
            .phases
            .iter()
            .enumerate()
            .filter(|(_, phase)| starts_with(&phase.name));
        let Some((index, _)) = candidates.max_by_key(|(_, phase)| phase.name.len()) else {
            return;
        };
        if self.reached != Some(index) {
            self.reached = Some(index);
            self.counted = 0;
            next.current = None;
            next.total = None;
        }
    }

    /// The share of the whole; none if nothing is known about that.
    fn overall(&self, own_percent: Option<f64>) -> Option<f64> {
        if self.phases.is_empty() {
            return own_percent;
        }
        let phase = &self.phases[self.reached?];
        Some(phase.start + phase.share * own_percent.unwrap_or(0.0).clamp(0.0, 100.0) / 100.0)
    }
}

fn counted_percent(progress: &Progress) -> Option<f64> {
    match (progress.current, progress.total) {
        (Some(current), Some(total)) if total > 0 => Some(current as f64 * 100.0 / total as f64),
        _ => None,
    }
}
