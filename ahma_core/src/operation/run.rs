//! Every decision about one process until its end, without side effects.
//!
//! The rule of the table: a run is over only when its supervisor reports that nothing is left.

use std::time::Duration;

use crate::jail::{ExitReport, ProcessEvent};

use super::Background;

/// One process and what it started, from launch to nothing left.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Run {
    /// The command itself runs.
    Active,
    /// The command has exited; its background processes may finish.
    Lingering {
        exit: ExitReport,
    },
    /// The command has exited; its background processes are being stopped.
    Clearing {
        exit: ExitReport,
    },
    /// A stop was requested, or the time is up.
    Stopping {
        why: StopReason,
        exit: Option<ExitReport>,
    },
    Over,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunEvent {
    Process(ProcessEvent),
    StopAsked(StopReason),
    LingerOver,
}

/// The action that an event requires of the task.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunEffect {
    Wait,
    StartLinger,
    StopProcess,
    /// Stop what a command that has ended left running.
    StopBackground,
    End(RunEnd),
}

/// End of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunEnd {
    Exited {
        exit: ExitReport,
        background: Background,
    },
    Stopped {
        why: StopReason,
        exit: Option<ExitReport>,
    },
    Lost {
        reason: String,
        exit: Option<ExitReport>,
    },
}

/// Reason for stopping an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StopReason {
    Cancelled(Option<String>),
    TimedOut(Duration),
    /// By the end of the server, not by its client or an operator.
    Interrupted(String),
}

impl StopReason {
    pub(super) fn shutting_down() -> Self {
        Self::Interrupted("the server is shutting down".to_owned())
    }
}

impl Run {
    /// True if a request to stop would still change anything.
    pub(super) fn heeds_stop(&self) -> bool {
        matches!(self, Self::Active | Self::Lingering { .. })
    }

    pub(super) fn is_lingering(&self) -> bool {
        matches!(self, Self::Lingering { .. })
    }

    pub(super) fn on(self, event: RunEvent) -> (Self, RunEffect) {
        use ProcessEvent::{Exited, Gone, Lost};
        use RunEvent::{LingerOver, Process, StopAsked};

        match (self, event) {
            (Self::Active, Process(Exited(exit))) => (Self::Lingering { exit }, RunEffect::StartLinger),
            (Self::Active, StopAsked(why)) => (Self::Stopping { why, exit: None }, RunEffect::StopProcess),
            // The supervisor promises an exit report before `Gone`; without one we do not know how the command ended.
            (Self::Active, Process(Gone)) => Self::over(RunEnd::Lost {
                reason: "its supervisor sent no report".to_owned(),
                exit: None,
            }),
            (Self::Active, Process(Lost { reason })) => Self::over(RunEnd::Lost { reason, exit: None }),

            (Self::Lingering { exit }, Process(Gone)) => Self::over(RunEnd::Exited {
                exit,
                background: Background::Clear,
            }),
            // The command had ended by itself, so its exit stands; only the waiting is cut short.
            (Self::Lingering { exit }, StopAsked(_) | LingerOver) => {
                (Self::Clearing { exit }, RunEffect::StopBackground)
            }
            (Self::Clearing { exit }, Process(Gone)) => Self::over(RunEnd::Exited {
                exit,
                background: Background::Stopped,
            }),
            (Self::Lingering { exit } | Self::Clearing { exit }, Process(Lost { reason })) => {
                Self::over(RunEnd::Lost {
                    reason,
                    exit: Some(exit),
                })
            }

            (Self::Stopping { why, .. }, Process(Exited(exit))) => (
                Self::Stopping {
                    why,
                    exit: Some(exit),
                },
                RunEffect::Wait,
            ),
            (Self::Stopping { why, exit }, Process(Gone)) => Self::over(RunEnd::Stopped { why, exit }),
            (Self::Stopping { exit, .. }, Process(Lost { reason })) => {
                Self::over(RunEnd::Lost { reason, exit })
            }

            // Late or repeated; nothing left to decide.
            (state @ (Self::Lingering { .. } | Self::Clearing { .. } | Self::Over), Process(Exited(_)))
            | (state @ (Self::Stopping { .. } | Self::Clearing { .. }), StopAsked(_) | LingerOver)
            | (state @ Self::Active, LingerOver)
            | (state @ Self::Over, Process(Gone | Lost { .. }) | StopAsked(_) | LingerOver) => {
                (state, RunEffect::Wait)
            }
        }
    }

    fn over(end: RunEnd) -> (Self, RunEffect) {
        (Self::Over, RunEffect::End(end))
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
