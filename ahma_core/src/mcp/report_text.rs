//! The text of a report: one line about an operation, a whole answer, or a shorter one where several share an answer.
//!
//! Everything in it is in the structured content, too.

use std::fmt::Write as _;

use ahma_common::words::counted;

use super::report::{OperationReport, OperationStatus};
use crate::{
    observe::{Finding, FindingBudget, Severity, Show, displayed},
    operation::{ExcerptFocus, Operation, OutputLog},
};

impl OperationReport {
    /// One line: `op_x (git_push) failed after 2.3 s: exit code 1`.
    pub(super) fn headline(&self) -> String {
        self.line_about(&self.tool)
    }

    /// The same with the command: `op_x (git_push: git push origin) failed after 2.3 s: exit code 1`.
    fn headline_with_command(&self) -> String {
        self.line_about(&format!("{}: {}", self.tool, self.command))
    }

    fn line_about(&self, work: &str) -> String {
        let mut line = format!("{} ({work}) {}", self.operation_id, self.status.words());
        match (self.duration_seconds, self.status) {
            (None, _) | (_, OperationStatus::Started | OperationStatus::Queued) => {}
            (Some(duration), OperationStatus::Running) => _ = write!(line, " for {} s", rounded(duration)),
            (Some(duration), _) => _ = write!(line, " after {} s", rounded(duration)),
        }
        match (&self.reason, self.exit_code, self.signal) {
            (Some(reason), ..) => _ = write!(line, ": {reason}"),
            (None, Some(code), _) if code != 0 => _ = write!(line, ": exit code {code}"),
            (None, _, Some(signal)) => _ = write!(line, ": signal {signal}"),
            _ => {}
        }
        if let Some(position) = self.queue_position {
            let _ = write!(line, ", number {position} in the queue");
        }
        if self.keeps_running {
            line.push_str(", keeps running until it is cancelled");
        }
        // The progress of an operation that failed is of no use.
        if self.status == OperationStatus::Failed {
            return line;
        }
        line + &self.progress_words()
    }

    /// The state in a list of several: a line or two.
    pub(super) fn row_text(&self) -> String {
        let mut text = self.headline_with_command();
        if let (OperationStatus::Running, Some(newest)) = (self.status, &self.newest_line) {
            let _ = write!(text, "\n  newest line: {newest}");
        }
        text
    }

    /// The line that an answer begins with: `exit 101 after 11 s · op_x`.
    pub(super) fn first_line(&self) -> String {
        let after = self
            .duration_seconds
            .map_or_else(String::new, |duration| format!(" after {} s", rounded(duration)));
        let because = |reason: &Option<String>| {
            reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(": {reason}"))
        };
        let mut line = match (self.status, self.exit_code, self.signal) {
            (OperationStatus::Started, ..) => "started".to_owned(),
            (OperationStatus::Queued, ..) => {
                let place = self.queue_position.map_or_else(String::new, |position| {
                    format!(", number {position} in the queue")
                });
                format!("queued{}{place}", because(&self.reason))
            }
            (OperationStatus::Running, ..) => format!("still running{after}{}", self.progress_words()),
            (OperationStatus::Completed, ..) => format!("completed{after}"),
            (OperationStatus::Failed, Some(code), _) => {
                format!("exit {code}{after}{}", self.code_meaning(code))
            }
            (OperationStatus::Failed, None, Some(_)) => match &self.reason {
                Some(reason) => format!("{reason}{after}"),
                None => format!("failed{after}"),
            },
            // The reason is the time limit, which is the time it took.
            (OperationStatus::TimedOut, ..) => format!("timed out{after}{}", self.progress_words()),
            (OperationStatus::Failed | OperationStatus::Cancelled | OperationStatus::Interrupted, ..) => {
                let reached = self.progress_words();
                format!("{}{after}{reached}{}", self.status.words(), because(&self.reason))
            }
        };
        let _ = write!(line, " · {}", self.operation_id);
        line
    }

    /// `: the target cannot be reached`, if the tool file explains the code.
    fn code_meaning(&self, code: i32) -> String {
        let reason = self.reason.as_deref().unwrap_or_default();
        let meaning = reason.strip_prefix(&format!("exit code {code}: "));
        meaning.map_or_else(String::new, |meaning| format!(": {meaning}"))
    }

    /// `, 40% (linking), 75 s left`
    fn progress_words(&self) -> String {
        let mut words = match (self.percent, &self.phase) {
            (Some(percent), Some(phase)) => format!(", {percent:.0}% ({phase})"),
            (Some(percent), None) => format!(", {percent:.0}%"),
            (None, Some(phase)) => format!(" ({phase})"),
            (None, None) => String::new(),
        };
        if let Some(seconds) = self.eta_seconds {
            let _ = write!(words, ", {} s left", rounded(seconds));
        }
        words
    }

    /// The text of the answer to the call itself. A plain success is its output and nothing else.
    pub(super) fn text(&self) -> String {
        if self.status != OperationStatus::Completed {
            return self.told();
        }
        let text = self.body();
        match self.show {
            _ if !text.is_empty() => text,
            Show::Findings | Show::Summary if self.output_lines.is_some_and(|lines| lines > 0) => {
                self.first_line()
            }
            Show::Findings | Show::Summary | Show::Output => "(no output)".to_owned(),
        }
    }

    /// The text of an answer that begins with the state and the id of the operation.
    pub(super) fn told(&self) -> String {
        let body = self.body();
        let mut text = self.first_line();
        if !body.is_empty() {
            text.push('\n');
            text.push_str(&body);
        }
        text
    }

    /// The text in an answer about several operations, which names the tool of each.
    pub(super) fn told_among_others(&self) -> String {
        let text = self.told();
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        format!("{first} ({})\n{rest}", self.tool)
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
            text.push_str(&step.status.replace('_', " "));
            let _ = match (&step.reason, step.exit_code) {
                (Some(reason), _) => writeln!(text, ": {reason}"),
                (None, Some(code)) if code != 0 => writeln!(text, ", exit {code}"),
                (None, _) => writeln!(text),
            };
        }
        let findings = self.finding_lines();
        let mut remarks = Vec::new();
        match self.show {
            Show::Output => {
                text.push_str(output);
                remarks.extend(findings);
            }
            Show::Findings | Show::Summary => {
                text.push_str(&findings.join("\n"));
                remarks.extend((!output.is_empty()).then(|| output.to_owned()));
            }
        }
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

    /// The number of findings, the worst of them, and the way to read the others.
    fn finding_lines(&self) -> Vec<String> {
        let Some(counts) = &self.finding_counts else {
            return Vec::new();
        };
        let only_counted = self.findings_only_counted.map_or_else(String::new, |counts| {
            format!(" (only counted: {})", counts.in_words())
        });
        let until = match self.status {
            OperationStatus::TimedOut | OperationStatus::Cancelled | OperationStatus::Interrupted => {
                " until then"
            }
            _ => "",
        };
        let mut lines = vec![format!("findings{until}: {}{only_counted}", counts.in_words())];
        let told: Vec<&Finding> = match self.show {
            // Findings of severity info are in the output already.
            Show::Output => {
                let worst = self.findings.iter();
                let worst = worst.filter(|finding| finding.severity > Severity::Info);
                worst.take(TOLD_BESIDE_OUTPUT).collect()
            }
            Show::Summary if self.status == OperationStatus::Completed => Vec::new(),
            Show::Findings | Show::Summary => self.findings.iter().take(TOLD_FINDINGS).collect(),
        };
        let mut room = TOLD_BYTES;
        for (number, finding) in told.into_iter().enumerate() {
            let line = format!("- {}", finding_line(finding));
            if number > 0 && line.len() > room {
                break;
            }
            room = room.saturating_sub(line.len() + 1);
            lines.push(line);
        }
        let shown = (lines.len() - 1) as u64;
        let more = counts.total().saturating_sub(shown);
        if more > 0 {
            let from = match shown {
                0 => String::new(),
                shown => format!(", \"from_finding\": {shown}"),
            };
            lines.push(format!(
                "{more} more: output {{\"operation_id\": \"{}\", \"what\": \"findings\"{from}}}",
                self.operation_id
            ));
        }
        lines
    }

    /// Leaves out all but the end of the output.
    pub(super) fn keep_last_lines(&mut self, count: usize) {
        let Some(output) = &mut self.output else {
            return;
        };
        let body = output.strip_suffix('\n').unwrap_or(output);
        let Some((before, _)) = body.rmatch_indices('\n').nth(count.saturating_sub(1)) else {
            return;
        };
        *output = output[before + 1..].to_owned();
        let first = self.output_lines.unwrap_or(0).saturating_sub(count as u64);
        let marker = format!(
            "[... lines 1 to {first} left out; to read them: output {{\"operation_id\": \"{}\", \"from_line\": 1}} ...]\n",
            self.operation_id
        );
        output.insert_str(0, &marker);
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

    /// Bytes that it takes in an answer.
    pub(super) fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |bytes| bytes.len())
    }

    /// Cuts anew from the log: an excerpt of an excerpt would not count the lines that the first left out.
    fn shorten_output(&mut self, log: &OutputLog, max_bytes: usize) {
        if self
            .output
            .as_ref()
            .is_some_and(|output| output.len() > max_bytes)
        {
            let excerpt = log.excerpt_within(max_bytes, ExcerptFocus::End);
            self.output = Some(displayed(&excerpt.text).into_owned());
            self.left_out = excerpt.left_out;
        }
    }
}

/// Notice about a server that was started with `&`.
const BACKGROUND_STOPPED: &str = "[processes left in the background were stopped; \
     to keep one running, start it without & in a call of its own with keep_running]";

/// A text names this many findings beside the output; enough to see what to do first.
const TOLD_BESIDE_OUTPUT: usize = 3;

/// Number and bytes of findings in a text where they replace the output.
const TOLD_FINDINGS: usize = 20;
const TOLD_BYTES: usize = 1_300;

/// Characters of a title.
const MAX_TITLE_CHARS: usize = 300;

/// A finding on one line, without its details.
pub(super) fn finding_line(finding: &Finding) -> String {
    let place = finding
        .location
        .as_ref()
        .map_or_else(String::new, |location| format!(" ({location})"));
    let mut title = finding.title.as_str();
    let mut cut = "";
    if let Some((end, _)) = title.char_indices().nth(MAX_TITLE_CHARS) {
        (title, cut) = (&title[..end], "…");
    }
    let id = if finding.title.contains(&finding.id) {
        String::new()
    } else {
        format!("{}: ", finding.id)
    };
    format!("{} {id}{title}{cut}{place}", finding.severity.as_str())
}

/// A notice about findings that can no longer be read.
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

/// Less output is of no use.
const SMALLEST_OUTPUT_BYTES: usize = 512;

impl OperationStatus {
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

/// A long run is rounded to the second, a short one to the millisecond.
fn rounded(seconds: f64) -> f64 {
    let steps = match seconds {
        10.0.. => 1.0,
        1.0.. => 10.0,
        _ => 1000.0,
    };
    (seconds * steps).round() / steps
}

#[cfg(test)]
#[path = "report_text_tests.rs"]
mod tests;
