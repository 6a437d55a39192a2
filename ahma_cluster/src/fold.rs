//! The state of an operation: a fold over its events.
//!
//! Every event counts in one state only, so that the verdict of a late observer can do no harm, and an operation that has
//! ended never changes.

use crate::event::Event;

/// Attempts of an operation that may run again. One that loses three workers is likely to be the reason.
const MAX_ATTEMPTS: u32 = 3;

/// An operation after the events that were taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folded {
    pub stage: Stage,
    /// It may run again after the loss of its worker.
    pub rerun: bool,
    /// Sequence of the last event, counted or not.
    pub last_sequence: u64,
}

/// The life of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stage {
    /// No event yet.
    #[default]
    Unheard,
    Queued {
        attempt: u32,
    },
    Running {
        attempt: u32,
        worker: String,
        nonce: String,
    },
    Ended {
        attempt: u32,
        end: EndCause,
    },
}

/// The end of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndCause {
    /// Its worker says so.
    Reported { state: String },
    /// It never ran.
    Dropped { state: String, why: String },
    /// Its worker is gone.
    WorkerLost { worker: String },
}

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Ignored,
    Queued,
    Claimed,
    /// Its worker was lost, and it waits for another.
    Requeued,
    Ended,
}

impl Folded {
    /// Takes the next event of the log.
    pub fn take(&mut self, sequence: u64, event: &Event) -> Effect {
        self.last_sequence = sequence;
        let (stage, effect) = match (&self.stage, event) {
            (Stage::Unheard, Event::Queued { rerun, .. }) => {
                self.rerun = *rerun;
                (Stage::Queued { attempt: 1 }, Effect::Queued)
            }
            (
                Stage::Queued { attempt: current },
                Event::Claim {
                    attempt,
                    worker,
                    nonce,
                },
            ) if current == attempt => {
                let running = Stage::Running {
                    attempt: *attempt,
                    worker: worker.clone(),
                    nonce: nonce.clone(),
                };
                (running, Effect::Claimed)
            }
            (Stage::Queued { attempt: current }, Event::Drop { attempt, state, why })
                if current == attempt =>
            {
                let end = EndCause::Dropped {
                    state: state.clone(),
                    why: why.clone(),
                };
                (ended(*attempt, end), Effect::Ended)
            }
            (
                Stage::Running {
                    attempt: current,
                    worker,
                    ..
                },
                Event::Lost { attempt, .. },
            ) if current == attempt => {
                if self.rerun && *attempt < MAX_ATTEMPTS {
                    (Stage::Queued { attempt: attempt + 1 }, Effect::Requeued)
                } else {
                    let end = EndCause::WorkerLost {
                        worker: worker.clone(),
                    };
                    (ended(*attempt, end), Effect::Ended)
                }
            }
            (Stage::Running { attempt, nonce, .. }, Event::End(end))
                if *attempt == end.attempt && *nonce == end.nonce =>
            {
                let cause = EndCause::Reported {
                    state: end.state.clone(),
                };
                (ended(*attempt, cause), Effect::Ended)
            }
            _ => return Effect::Ignored,
        };
        self.stage = stage;
        effect
    }

    /// True if this claim is the one that counts.
    pub fn is_run_by(&self, claim: &str) -> bool {
        matches!(&self.stage, Stage::Running { nonce, .. } if nonce == claim)
    }

    /// Number of attempts that a worker began.
    pub fn attempts(&self) -> u32 {
        match &self.stage {
            Stage::Unheard => 0,
            Stage::Queued { attempt } => attempt - 1,
            Stage::Running { attempt, .. } => *attempt,
            Stage::Ended {
                attempt,
                end: EndCause::Dropped { .. },
            } => attempt - 1,
            Stage::Ended { attempt, .. } => *attempt,
        }
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended { .. })
    }
}

fn ended(attempt: u32, end: EndCause) -> Stage {
    Stage::Ended { attempt, end }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
