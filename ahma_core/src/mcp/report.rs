//! Operations as clients see them: the structured content of results. `wording.rs` makes the text beside it.
//!
//! One shape serves every tool, so a client that can read one answer can read them all. Fields without a value are
//! left out. The types here are also where the output schemas come from; they know nothing of rmcp.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::wording::forgotten_findings;
use crate::{
    jail::ExitStatus,
    observe::{Finding, SeverityCounts, displayed},
    operation::{Background, LeftOut, Operation, Outcome, Snapshot, State, StepReport, StepState},
};

/// One operation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct OperationReport {
    /// What `await`, `output` and `cancel` call this operation.
    pub(super) operation_id: String,
    pub(super) tool: String,
    /// What it runs, cut to one short line: a command line, a script, or the steps of a sequence.
    pub(super) command: String,
    pub(super) status: Status,
    pub(super) working_directory: String,
    /// Seconds spent running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_seconds: Option<f64>,
    /// Its place in the queue; 1 is next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue_position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eta_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// The signal that ended the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<i32>,
    /// Why the operation has not begun or did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// What was printed, as a terminal would show it, shortened in the middle if it is long; `left_out` says by how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) newest_line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<LeftOutReport>,
    /// Bytes that were printed but could not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_bytes: Option<u64>,
    /// What the tool found, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub(super) findings: Vec<Finding>,
    /// How many more findings `output` shows with `what: findings`.
    #[serde(skip_serializing_if = "is_none_left_out")]
    pub(super) findings_left_out: u64,
    /// How many findings of each severity there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, u64>>")]
    pub(super) finding_counts: Option<SeverityCounts>,
    /// Those of them that nothing else is known of, because there were more than the tool's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, u64>>")]
    pub(super) findings_only_counted: Option<SeverityCounts>,
    /// Of a sequence: what became of each step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<StepRow>,
    /// Processes were still running in the background some seconds after the command had ended, and were stopped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) background_stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peak_memory_bytes: Option<u64>,
    /// Why findings may be missing, and what the sandbox did about protected files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notices: Vec<String>,
    /// A guess that the sandbox was why the command failed, and how to allow what it wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sandbox_hint: Option<String>,
    /// Advice about what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Started,
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
    Interrupted,
}

/// Output that an answer does not carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct LeftOutReport {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    /// The first line left out; `output` takes it as `from_line`.
    pub(super) from_line: u64,
    /// The first byte left out; `output` takes it as `from_byte`.
    pub(super) from_byte: u64,
}

/// One step of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct StepRow {
    pub(super) step: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) status: StepStatus,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    pub(super) duration_seconds: f64,
    /// Where its output begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_line: Option<u64>,
    pub(super) lines: u64,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepStatus {
    Completed,
    Failed,
    Cancelled,
    TimedOut,
    Interrupted,
    Skipped,
    NotRun,
}

impl OperationReport {
    /// The answer to a call that goes on in the background, or waits for its turn there.
    pub(super) fn started(operation: &Operation) -> Self {
        let snapshot = operation.snapshot();
        let bare = Self::bare(&snapshot);
        match snapshot.queue_position {
            Some(_) => Self {
                queue_position: snapshot.queue_position,
                reason: snapshot.reason,
                ..bare
            },
            None => Self {
                status: Status::Started,
                ..bare
            },
        }
    }

    /// One short row.
    pub(super) fn row(snapshot: &Snapshot) -> Self {
        let (exit_code, signal) = exit(snapshot.exit);
        let running = !snapshot.state.is_final();
        Self {
            duration_seconds: Some(seconds(snapshot.elapsed)),
            queue_position: snapshot.queue_position,
            percent: snapshot.progress.percent.filter(|_| running),
            phase: phase(snapshot).filter(|_| running),
            eta_seconds: snapshot.progress.eta_seconds.filter(|_| running),
            newest_line: snapshot.newest_line.clone(),
            output_lines: Some(snapshot.output_lines),
            output_bytes: Some(snapshot.output_bytes),
            finding_counts: counts(snapshot.finding_counts),
            reason: snapshot.reason.clone(),
            exit_code,
            signal,
            ..Self::bare(snapshot)
        }
    }

    /// Everything about an operation: its outcome, or how it stands with what it printed so far.
    pub(super) fn full(operation: &Operation) -> Self {
        match operation.ended() {
            Some(outcome) => {
                let forgotten = operation.forgotten_findings() as u64;
                let mut report = Self::ended(&outcome);
                report.findings_left_out = report.findings_left_out.saturating_sub(forgotten);
                report.notices.extend(forgotten_findings(operation));
                report
            }
            None => {
                let excerpt = operation.output().excerpt();
                let worst = operation.worst_findings();
                Self {
                    newest_line: None,
                    output: Some(displayed(&excerpt.text).into_owned()),
                    left_out: excerpt.left_out.map(LeftOutReport::from),
                    lost_bytes: operation.output().loss().map(|loss| loss.bytes),
                    findings_left_out: left_out(worst.findings.len(), &worst.counts, &worst.only_counted),
                    findings_only_counted: counts(worst.only_counted),
                    findings: worst.findings,
                    ..Self::row(&operation.snapshot())
                }
            }
        }
    }

    pub(super) fn ended(outcome: &Outcome) -> Self {
        let (exit_code, signal) = exit(outcome.exit);
        Self {
            operation_id: outcome.id.to_string(),
            tool: outcome.tool.clone(),
            command: outcome.command.clone(),
            status: State::from(outcome.state).into(),
            working_directory: outcome.directory.display().to_string(),
            duration_seconds: Some(seconds(outcome.duration)),
            queue_position: None,
            percent: None,
            phase: None,
            eta_seconds: None,
            exit_code,
            signal,
            reason: outcome.reason.clone(),
            output: Some(displayed(&outcome.output.text).into_owned()),
            newest_line: None,
            output_lines: Some(outcome.output.total_lines),
            output_bytes: Some(outcome.output.total_bytes),
            left_out: outcome.output.left_out.clone().map(LeftOutReport::from),
            lost_bytes: outcome.lost.as_ref().map(|loss| loss.bytes),
            findings: outcome.findings.clone(),
            findings_left_out: left_out(
                outcome.findings.len(),
                &outcome.finding_counts,
                &outcome.findings_only_counted,
            ),
            finding_counts: counts(outcome.finding_counts),
            findings_only_counted: counts(outcome.findings_only_counted),
            steps: outcome.steps.iter().map(StepRow::from).collect(),
            background_stopped: outcome.background == Background::Stopped,
            cpu_seconds: outcome.cpu.map(seconds),
            peak_memory_bytes: outcome.peak_memory_bytes,
            notices: outcome.notices.clone(),
            sandbox_hint: outcome.sandbox_hint.clone(),
            hint: outcome.success_hint.clone(),
        }
    }

    fn bare(snapshot: &Snapshot) -> Self {
        Self {
            operation_id: snapshot.id.to_string(),
            tool: snapshot.tool.clone(),
            command: snapshot.command.clone(),
            status: snapshot.state.into(),
            working_directory: snapshot.directory.display().to_string(),
            duration_seconds: None,
            queue_position: None,
            percent: None,
            phase: None,
            eta_seconds: None,
            exit_code: None,
            signal: None,
            reason: None,
            output: None,
            newest_line: None,
            output_lines: None,
            output_bytes: None,
            left_out: None,
            lost_bytes: None,
            findings: Vec::new(),
            findings_left_out: 0,
            finding_counts: None,
            findings_only_counted: None,
            steps: Vec::new(),
            background_stopped: false,
            cpu_seconds: None,
            peak_memory_bytes: None,
            notices: Vec::new(),
            sandbox_hint: None,
            hint: None,
        }
    }

    /// Whether it tells of an end.
    pub(super) fn has_ended(&self) -> bool {
        self.is_failure() || self.status == Status::Completed
    }

    /// Whether a call that ends like this has failed.
    pub(super) fn is_failure(&self) -> bool {
        matches!(
            self.status,
            Status::Failed | Status::Cancelled | Status::TimedOut | Status::Interrupted
        )
    }
}

impl From<State> for Status {
    fn from(state: State) -> Self {
        match state {
            State::Queued => Self::Queued,
            State::Running => Self::Running,
            State::Completed => Self::Completed,
            State::Failed => Self::Failed,
            State::Cancelled => Self::Cancelled,
            State::TimedOut => Self::TimedOut,
            State::Interrupted => Self::Interrupted,
        }
    }
}

impl From<LeftOut> for LeftOutReport {
    fn from(
        LeftOut {
            bytes,
            lines,
            from_line,
            from_byte,
        }: LeftOut,
    ) -> Self {
        Self {
            bytes,
            lines,
            from_line,
            from_byte,
        }
    }
}

impl From<&StepReport> for StepRow {
    fn from(step: &StepReport) -> Self {
        let (status, reason) = match &step.state {
            StepState::Completed => (StepStatus::Completed, None),
            StepState::Failed => (StepStatus::Failed, None),
            StepState::Cancelled => (StepStatus::Cancelled, None),
            StepState::TimedOut => (StepStatus::TimedOut, None),
            StepState::Interrupted => (StepStatus::Interrupted, None),
            StepState::Skipped(why) => (StepStatus::Skipped, Some(why.clone())),
            StepState::NotRun => (StepStatus::NotRun, None),
        };
        Self {
            step: step.label.clone(),
            description: step.description.clone(),
            status,
            reason,
            exit_code: exit(step.exit).0,
            duration_seconds: seconds(step.duration),
            first_line: step.first_line,
            lines: step.lines,
        }
    }
}

/// To the millisecond; more would be noise.
fn seconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

fn exit(status: Option<ExitStatus>) -> (Option<i32>, Option<i32>) {
    match status {
        Some(ExitStatus::Code(code)) => (Some(code), None),
        Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    }
}

fn phase(snapshot: &Snapshot) -> Option<String> {
    let step = snapshot
        .step
        .as_ref()
        .map(|step| format!("step {} of {}: {}", step.number, step.of, step.label));
    match (step, snapshot.progress.phase.clone()) {
        (Some(step), Some(phase)) => Some(format!("{step}, {phase}")),
        (step, phase) => step.or(phase),
    }
}

fn counts(counts: SeverityCounts) -> Option<SeverityCounts> {
    (counts.total() > 0).then_some(counts)
}

/// How many findings can be read besides the `shown` ones.
fn left_out(shown: usize, all: &SeverityCounts, only_counted: &SeverityCounts) -> u64 {
    (all.total() - only_counted.total()).saturating_sub(shown as u64)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_none_left_out(left_out: &u64) -> bool {
    *left_out == 0
}
