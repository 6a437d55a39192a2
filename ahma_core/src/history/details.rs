//! The parts of an outcome that are read back but never searched: one column of JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    jail::ExitStatus,
    observe::SeverityCounts,
    operation::{Background, LossCause, OperationState, Outcome, StepReport, StepState},
};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OutcomeDetails {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepDetails>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    background_stopped: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sandbox_hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loss: Option<LossDetails>,
    #[serde(default)]
    pub(super) only_counted: SeverityCounts,
}

#[derive(Debug, Serialize, Deserialize)]
struct StepDetails {
    label: String,
    description: Option<String>,
    state: String,
    /// The condition under which it was skipped.
    skipped: Option<String>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    millis: u64,
    first_line: Option<u64>,
    lines: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LossDetails {
    Quota,
    Storage(String),
}

impl OutcomeDetails {
    pub(super) fn of(outcome: &Outcome) -> Self {
        Self {
            steps: outcome.steps.iter().map(StepDetails::from).collect(),
            background_stopped: outcome.background == Background::Stopped,
            notices: outcome.notices.clone(),
            hint: outcome.hint.clone(),
            sandbox_hint: outcome.sandbox_hint.clone(),
            loss: outcome.lost.as_ref().map(|lost| match &lost.cause {
                LossCause::Quota => LossDetails::Quota,
                LossCause::Storage(why) => LossDetails::Storage(why.clone()),
            }),
            only_counted: outcome.findings_only_counted,
        }
    }

    pub(super) fn steps(&self) -> Vec<StepReport> {
        self.steps.iter().map(StepReport::from).collect()
    }

    pub(super) fn background(&self) -> Background {
        if self.background_stopped {
            Background::Stopped
        } else {
            Background::Clear
        }
    }

    pub(super) fn loss_cause(&self) -> Option<LossCause> {
        self.loss.as_ref().map(|loss| match loss {
            LossDetails::Quota => LossCause::Quota,
            LossDetails::Storage(why) => LossCause::Storage(why.clone()),
        })
    }
}

impl From<&StepReport> for StepDetails {
    fn from(step: &StepReport) -> Self {
        Self {
            label: step.label.clone(),
            description: step.description.clone(),
            state: step.state.as_str().to_owned(),
            skipped: step.state.skipped().map(str::to_owned),
            exit_code: step.exit.and_then(ExitStatus::code),
            signal: step.exit.and_then(ExitStatus::signal),
            millis: u64::try_from(step.duration.as_millis()).unwrap_or(u64::MAX),
            first_line: step.first_line,
            lines: step.lines,
        }
    }
}

impl From<&StepDetails> for StepReport {
    fn from(step: &StepDetails) -> Self {
        let end = OperationState::named(&step.state).and_then(OperationState::as_end);
        Self {
            label: step.label.clone(),
            description: step.description.clone(),
            state: match (end, &step.skipped) {
                (Some(end), _) => StepState::Ended(end),
                (None, Some(reason)) => StepState::Skipped(reason.clone()),
                (None, None) => StepState::NotRun,
            },
            exit: exit_status(step.exit_code, step.signal),
            duration: Duration::from_millis(step.millis),
            first_line: step.first_line,
            lines: step.lines,
        }
    }
}

pub(super) fn exit_status(code: Option<i32>, signal: Option<i32>) -> Option<ExitStatus> {
    code.map(ExitStatus::Code).or(signal.map(ExitStatus::Signal))
}
