//! Operations as clients see them: the structured content of results. `report_text.rs` makes the text that goes with it.
//!
//! One shape serves every tool, so a client that can read one answer can read them all. Fields without a value are
//! left out. The types here are also where the output schemas come from; they know nothing of rmcp.

use serde::Serialize;
use serde_json::{Value, json};

use super::report_text::forgotten_findings;
use crate::{
    jail::ExitStatus,
    observe::{Finding, SeverityCounts, Show, displayed},
    operation::{
        Background, ExcerptFocus, LeftOut, Operation, OperationState, Outcome, Snapshot, StepReport,
    },
};

/// One operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct OperationReport {
    /// The name by which `await`, `output` and `cancel` know this operation.
    pub(super) operation_id: String,
    pub(super) tool: String,
    /// The command, cut to one short line: a command line, a script, or the steps of a sequence.
    pub(super) command: String,
    pub(super) status: OperationStatus,
    /// Meant to run until it is cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) keeps_running: bool,
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
    /// Reason why the operation has not begun or did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// The output, as a terminal would show it, shortened in the middle if it is long; `left_out` says by how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) newest_line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<LeftOut>,
    /// Bytes that were printed but could not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_bytes: Option<u64>,
    /// Findings of the tool, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) findings: Vec<Finding>,
    /// Number of further findings, which `output` shows with `what: findings`.
    #[serde(skip_serializing_if = "is_none_left_out")]
    pub(super) findings_left_out: u64,
    /// Number of findings of each severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finding_counts: Option<SeverityCounts>,
    /// Findings that were only counted, because there were more than the tool's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) findings_only_counted: Option<SeverityCounts>,
    /// The steps of a sequence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<StepRow>,
    /// Processes were still running in the background some seconds after the command had ended, and were stopped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) background_stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peak_memory_bytes: Option<u64>,
    /// Reasons why findings may be missing, and actions of the guard on protected files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notices: Vec<String>,
    /// A guess that the command failed because of the sandbox, and the flag that would allow the access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sandbox_hint: Option<String>,
    /// Advice about what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// The part of the output that `output` is.
    #[serde(skip)]
    pub(super) show: Show,
}

/// State of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OperationStatus {
    #[default]
    Started,
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
    Interrupted,
}

/// One step of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct StepRow {
    pub(super) step: String,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) status: &'static str,
    /// Reason why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    pub(super) duration_seconds: f64,
    /// Start of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_line: Option<u64>,
    pub(super) lines: u64,
}

impl OperationReport {
    /// The answer to a call that goes on in the background, or waits for its turn there.
    pub(super) fn started(operation: &Operation) -> Self {
        let snapshot = operation.snapshot();
        let bare = Self::of_snapshot(&snapshot);
        match snapshot.queue_position {
            Some(_) => Self {
                queue_position: snapshot.queue_position,
                reason: snapshot.reason,
                ..bare
            },
            None => Self {
                status: OperationStatus::Started,
                ..bare
            },
        }
    }

    /// One short row.
    pub(super) fn row(snapshot: &Snapshot) -> Self {
        let running = !snapshot.state.is_final();
        Self {
            duration_seconds: Some(seconds(snapshot.elapsed)),
            queue_position: snapshot.queue_position,
            percent: snapshot.progress.percent.filter(|_| running),
            phase: snapshot.phase().filter(|_| running),
            eta_seconds: snapshot.progress.eta_seconds.filter(|_| running),
            newest_line: snapshot.newest_line.clone(),
            output_lines: Some(snapshot.output_lines),
            output_bytes: Some(snapshot.output_bytes),
            finding_counts: counts(snapshot.finding_counts),
            reason: snapshot.reason.clone(),
            exit_code: snapshot.exit.and_then(ExitStatus::code),
            signal: snapshot.exit.and_then(ExitStatus::signal),
            ..Self::of_snapshot(snapshot)
        }
    }

    /// Everything about an operation: its outcome, or its state and its output so far.
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
                let excerpt = operation.output().excerpt(ExcerptFocus::End);
                let worst = operation.worst_findings();
                Self {
                    newest_line: None,
                    output: Some(displayed(&excerpt.text).into_owned()),
                    output_lines: Some(excerpt.total_lines),
                    output_bytes: Some(excerpt.total_bytes),
                    left_out: excerpt.left_out,
                    lost_bytes: operation.output().loss().map(|loss| loss.bytes),
                    findings_left_out: left_out(worst.findings.len(), &worst.counts, &worst.only_counted),
                    findings_only_counted: counts(worst.only_counted),
                    findings: worst.findings,
                    ..Self::row(&operation.snapshot())
                }
            }
        }
    }

    /// The same with only the output that the client has not read yet.
    pub(super) fn news(operation: &Operation) -> Self {
        let mut report = Self::full(operation);
        let read = operation.read_bytes();
        // The tool has chosen the output to show.
        let is_chosen = report.has_ended() && report.show != Show::Output;
        if read == 0 || operation.is_seen() || is_chosen {
            return report;
        }
        let log = operation.output();
        let new = log.since(read, log.page_bytes(), report.has_ended());
        let mut text = String::new();
        if new.skipped_bytes > 0 {
            text = format!(
                "[... {} bytes left out; to read them: output {{\"operation_id\": \"{}\", \"from_byte\": {read}}} ...]\n",
                new.skipped_bytes, report.operation_id
            );
        }
        text.push_str(&displayed(&new.text));
        report.output = Some(text);
        report.left_out = None;
        report.output_bytes = Some(new.next);
        report
    }

    pub(super) fn ended(outcome: &Outcome) -> Self {
        let was_cut = outcome.state.is_cut();
        Self {
            duration_seconds: Some(seconds(outcome.duration)),
            percent: outcome.reached.percent.filter(|_| was_cut),
            phase: outcome.reached.phase.clone().filter(|_| was_cut),
            exit_code: outcome.exit.and_then(ExitStatus::code),
            signal: outcome.exit.and_then(ExitStatus::signal),
            reason: outcome.reason.clone(),
            output: Some(displayed(&outcome.output.text).into_owned()),
            output_lines: Some(outcome.output.total_lines),
            output_bytes: Some(outcome.output.total_bytes),
            left_out: outcome.output.left_out.clone(),
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
            hint: outcome.hint.clone(),
            show: outcome.show,
            operation_id: outcome.id.to_string(),
            tool: outcome.tool.clone(),
            command: outcome.command.clone(),
            status: OperationState::from(outcome.state).into(),
            working_directory: outcome.directory.display().to_string(),
            ..Self::default()
        }
    }

    /// A report without any of the optional parts.
    fn of_snapshot(snapshot: &Snapshot) -> Self {
        Self {
            operation_id: snapshot.id.to_string(),
            tool: snapshot.tool.clone(),
            command: snapshot.command.clone(),
            status: snapshot.state.into(),
            keeps_running: snapshot.keeps_running && !snapshot.state.is_final(),
            working_directory: snapshot.directory.display().to_string(),
            ..Self::default()
        }
    }

    /// Its id, status and exit code, for programs.
    pub(super) fn reference(&self) -> Value {
        let mut reference = json!({ "operation_id": self.operation_id, "status": self.status });
        if let Some(code) = self.exit_code {
            reference["exit_code"] = code.into();
        }
        reference
    }

    /// True if the operation has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.is_failure() || self.status == OperationStatus::Completed
    }

    /// True if a call that ends like this has failed.
    pub(super) fn is_failure(&self) -> bool {
        matches!(
            self.status,
            OperationStatus::Failed
                | OperationStatus::Cancelled
                | OperationStatus::TimedOut
                | OperationStatus::Interrupted
        )
    }
}

impl From<OperationState> for OperationStatus {
    fn from(state: OperationState) -> Self {
        match state {
            OperationState::Queued => Self::Queued,
            OperationState::Running => Self::Running,
            OperationState::Completed => Self::Completed,
            OperationState::Failed => Self::Failed,
            OperationState::Cancelled => Self::Cancelled,
            OperationState::TimedOut => Self::TimedOut,
            OperationState::Interrupted => Self::Interrupted,
        }
    }
}

impl From<&StepReport> for StepRow {
    fn from(step: &StepReport) -> Self {
        Self {
            step: step.label.clone(),
            description: step.description.clone(),
            status: step.state.as_str(),
            reason: step.state.skipped().map(str::to_owned),
            exit_code: step.exit.and_then(ExitStatus::code),
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

fn counts(counts: SeverityCounts) -> Option<SeverityCounts> {
    (counts.total() > 0).then_some(counts)
}

/// Number of findings that can be read besides the `shown` ones.
fn left_out(shown: usize, all: &SeverityCounts, only_counted: &SeverityCounts) -> u64 {
    (all.total() - only_counted.total()).saturating_sub(shown as u64)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_none_left_out(left_out: &u64) -> bool {
    *left_out == 0
}
