//! What a report says in words: one line about an operation, the text of an answer, and less of it where many share one.
//!
//! Nothing is told here that the structured content does not carry too.

use std::fmt::Write as _;

use ahma_flags::words::counted;

use super::report::{LeftOutReport, OperationReport, Status, StepStatus};
use crate::{
    observe::{Finding, FindingBudget, Severity, displayed},
    operation::{Operation, OutputLog},
};

impl OperationReport {
    /// One line: `op_x (git_push) failed after 2.3 s: exit code 1`.
    pub(super) fn headline(&self) -> String {
        self.line_about(&self.tool)
    }

    /// The same with what is run: `op_x (git_push: git push origin) failed after 2.3 s: exit code 1`.
    pub(super) fn headline_with_command(&self) -> String {
        self.line_about(&format!("{}: {}", self.tool, self.command))
    }

    fn line_about(&self, work: &str) -> String {
        let mut line = format!("{} ({work}) {}", self.operation_id, self.status.words());
        match (self.duration_seconds, self.status) {
            (None, _) | (_, Status::Started | Status::Queued) => {}
            (Some(duration), Status::Running) => _ = write!(line, " for {} s", rounded(duration)),
            (Some(duration), _) => _ = write!(line, " after {} s", rounded(duration)),
        }
        match (&self.reason, self.exit_code, self.signal) {
            (Some(reason), ..) => _ = write!(line, ": {reason}"),
            (None, Some(code), _) if code != 0 => _ = write!(line, ": exit code {code}"),
            (None, _, Some(signal)) => _ = write!(line, ": signal {signal}"),
            _ => {}
        }
        match (self.queue_position, self.percent, &self.phase) {
            (Some(position), ..) => _ = write!(line, ", number {position} in the queue"),
            (None, Some(percent), Some(phase)) => _ = write!(line, ", {percent:.0}% ({phase})"),
            (None, Some(percent), None) => _ = write!(line, ", {percent:.0}%"),
            (None, None, Some(phase)) => _ = write!(line, " ({phase})"),
            (None, None, None) => {}
        }
        if let Some(seconds) = self.eta_seconds {
            let _ = write!(line, ", {} s left", rounded(seconds));
        }
        line
    }

    /// How it stands among others: a line or two.
    pub(super) fn row_text(&self) -> String {
        let mut text = self.headline_with_command();
        if let (Status::Running, Some(newest)) = (self.status, &self.newest_line) {
            let _ = write!(text, "\n  newest line: {newest}");
        }
        text
    }

    /// What a call says that goes on in the background: `op_x started`, or why it has not.
    pub(super) fn beginning(&self) -> String {
        match self.status {
            Status::Queued => self.headline(),
            _ => format!("{} {}", self.operation_id, self.status.words()),
        }
    }

    /// The text of the answer to the call itself. A plain success is its output and nothing else.
    pub(super) fn text(&self) -> String {
        if self.status != Status::Completed {
            return self.told();
        }
        let text = self.body();
        if text.is_empty() {
            "(no output)".to_owned()
        } else {
            text
        }
    }

    /// The text of an answer that comes later or beside others, so that it says first which operation it is about.
    pub(super) fn told(&self) -> String {
        format!("{}\n{}", self.headline_with_command(), self.body())
    }

    /// Steps, output, and everything that has to be known about them.
    fn body(&self) -> String {
        let output = self.output.as_deref().unwrap_or_default();
        let mut text = String::with_capacity(output.len() + 128);
        for step in &self.steps {
            let _ = match &step.description {
                Some(description) => write!(text, "step {} ({description}): ", step.step),
                None => write!(text, "step {}: ", step.step),
            };
            text.push_str(step.status.words());
            let _ = match &step.reason {
                Some(reason) => writeln!(text, ": {reason}"),
                None => writeln!(text),
            };
        }
        text.push_str(output);
        let mut remarks = self.finding_lines();
        if self.background_stopped {
            remarks.push(BACKGROUND_STOPPED.to_owned());
        }
        remarks.extend(self.notices.iter().map(|notice| format!("notice: {notice}")));
        let hints = self.sandbox_hint.iter().chain(&self.hint);
        remarks.extend(hints.map(|hint| format!("hint: {hint}")));
        for remark in remarks {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&remark);
        }
        text
    }

    /// How many findings there are, the worst of them, and how to read the others.
    fn finding_lines(&self) -> Vec<String> {
        let Some(counts) = &self.finding_counts else {
            return Vec::new();
        };
        let only_counted = self.findings_only_counted.map_or_else(String::new, |counts| {
            format!(" (only counted: {})", counts.in_words())
        });
        let mut lines = vec![format!("findings: {}{only_counted}", counts.in_words())];
        // What is only worth knowing is not worth saying twice: it stands in the output.
        let worst = self
            .findings
            .iter()
            .filter(|finding| finding.severity > Severity::Info);
        lines.extend(
            worst
                .take(TOLD_FINDINGS)
                .map(|finding| format!("- {}", finding_line(finding))),
        );
        if counts.total() > (lines.len() - 1) as u64 {
            lines.push(format!(
                "output {{\"operation_id\": \"{}\", \"what\": \"findings\"}} reads them",
                self.operation_id
            ));
        }
        lines
    }

    /// Leaves out findings and the middle of the output until the report takes about `max_bytes`.
    pub(super) fn shorten(&mut self, log: &OutputLog, max_bytes: usize) {
        let budget = FindingBudget {
            findings: self.findings.len(),
            bytes: max_bytes / 2,
        };
        let fitting = budget.count_fitting(&self.findings);
        self.findings_left_out += (self.findings.len() - fitting) as u64;
        self.findings.truncate(fitting);
        let output_bytes = self.output.as_ref().map_or(0, String::len);
        let others = self.size().saturating_sub(output_bytes);
        self.shorten_output(log, max_bytes.saturating_sub(others).max(SMALLEST_OUTPUT_BYTES));
    }

    /// How many bytes it takes in an answer.
    pub(super) fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |bytes| bytes.len())
    }

    /// Cut anew from the log: what is left out of an excerpt already would be forgotten otherwise.
    fn shorten_output(&mut self, log: &OutputLog, max_bytes: usize) {
        if self
            .output
            .as_ref()
            .is_some_and(|output| output.len() > max_bytes)
        {
            let excerpt = log.excerpt_within(max_bytes);
            self.output = Some(displayed(&excerpt.text).into_owned());
            self.left_out = excerpt.left_out.map(LeftOutReport::from);
        }
    }
}

/// Whoever leaves a server behind with `&` should hear how to keep it.
const BACKGROUND_STOPPED: &str = "[processes left in the background were stopped; \
     to keep one running, start it without & as an asynchronous call of its own]";

/// A text names this many findings; enough to see what to do first.
const TOLD_FINDINGS: usize = 3;

/// A finding on one line, without its details.
pub(super) fn finding_line(finding: &Finding) -> String {
    let place = finding
        .location
        .as_ref()
        .map_or_else(String::new, |location| format!(" ({location})"));
    format!(
        "{} {}: {}{place}",
        finding.severity.as_str(),
        finding.id,
        finding.title
    )
}

/// That findings can no longer be read, if so.
pub(super) fn forgotten_findings(operation: &Operation) -> Option<String> {
    let count = operation.forgotten_findings() as u64;
    (count > 0).then(|| {
        format!(
            "{} of this operation can no longer be read: operations that have ended held too many; \
             run it again for them.",
            counted(count, "finding")
        )
    })
}

/// Below this a piece of output says nothing.
const SMALLEST_OUTPUT_BYTES: usize = 512;

impl Status {
    fn words(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
            Self::Interrupted => "interrupted",
        }
    }
}

impl StepStatus {
    fn words(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
            Self::NotRun => "not run",
        }
    }
}

/// As exact as people care for: a long run to the second, a short one to the millisecond.
fn rounded(seconds: f64) -> f64 {
    let steps = match seconds {
        10.0.. => 1.0,
        1.0.. => 10.0,
        _ => 1000.0,
    };
    (seconds * steps).round() / steps
}

#[cfg(test)]
#[path = "wording_tests.rs"]
mod tests;
