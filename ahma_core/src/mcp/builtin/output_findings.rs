//! Findings of an operation: selection and text.

use ahma_common::words::counted;
use serde::Serialize;

use crate::{
    call::NamedArguments,
    mcp::report_text::{finding_line, forgotten_findings},
    observe::{Finding, FindingBudget, SeverityCounts},
    operation::Operation,
};

const MAX_FINDINGS: u64 = 1_000;
const DEFAULT_FINDINGS: u64 = 100;

/// A whole document is wanted complete, and up to this length it gets through every client.
const DOCUMENT_BYTES: usize = 1 << 20;

/// The arguments that choose findings.
#[derive(Debug)]
pub(super) struct FindingArguments {
    pub(super) format: Option<FindingFormat>,
    from: Option<u64>,
    most: Option<u64>,
    /// Return a document even if it is longer than an answer may be.
    whole: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingFormat {
    Json,
    Sarif,
    Junit,
}

/// Facts about the findings of an answer.
#[derive(Debug, Serialize)]
pub(super) struct FindingsReport {
    /// The findings themselves; empty if `text` is a document of them.
    findings: Vec<Finding>,
    /// Next `from_finding`. The most severe come first, so one that is found meanwhile moves others on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_finding: Option<usize>,
    /// Number of those that can be read.
    kept_findings: usize,
    /// Number of all that there were.
    total_findings: u64,
    /// Findings that cannot be read, because there were more than the limit of the tool or of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings_only_counted: Option<SeverityCounts>,
    /// Notice that some can no longer be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

impl FindingArguments {
    pub(super) fn take(arguments: &mut NamedArguments) -> Self {
        let formats = [
            ("json", FindingFormat::Json),
            ("sarif", FindingFormat::Sarif),
            ("junit", FindingFormat::Junit),
        ];
        Self {
            format: arguments.choice("format", &formats),
            from: arguments.integer("from_finding", 0..=u64::MAX),
            most: arguments.integer("max_findings", 1..=MAX_FINDINGS),
            whole: arguments.flag("whole").unwrap_or(false),
        }
    }

    /// Names of the arguments with other values than the defaults: many models send all arguments.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            (
                "format",
                self.format.is_some_and(|format| format != FindingFormat::Json),
            ),
            ("from_finding", self.from.is_some_and(|from| from != 0)),
            (
                "max_findings",
                self.most.is_some_and(|most| most != DEFAULT_FINDINGS),
            ),
            ("whole", self.whole),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }

    /// All findings as a document of the format asked for.
    pub(super) fn document(&self, operation: &Operation) -> Result<String, String> {
        let page = operation.findings(0, FindingBudget::ALL);
        Ok(match self.format.unwrap_or(FindingFormat::Json) {
            FindingFormat::Sarif => operation.sarif(&page).to_string(),
            FindingFormat::Junit => operation.junit(&page),
            FindingFormat::Json => serde_json::to_string_pretty(&page.findings)
                .map_err(|error| format!("the findings cannot be written as JSON: {error}"))?,
        })
    }

    /// The findings and their text, or the reason for a refusal.
    pub(super) fn read(&self, operation: &Operation) -> Result<(FindingsReport, String), String> {
        let from = usize::try_from(self.from.unwrap_or(0)).unwrap_or(usize::MAX);
        let format = self.format.unwrap_or(FindingFormat::Json);
        let (default_findings, bytes) = match format {
            FindingFormat::Json => (DEFAULT_FINDINGS, operation.output().page_bytes()),
            FindingFormat::Sarif | FindingFormat::Junit => (u64::MAX, DOCUMENT_BYTES),
        };
        let budget = FindingBudget {
            findings: usize::try_from(self.most.unwrap_or(default_findings)).unwrap_or(usize::MAX),
            bytes,
        };
        let page = operation.findings(from, budget);
        let mut findings = FindingsReport {
            findings: Vec::new(),
            next_finding: page.next,
            kept_findings: page.kept,
            total_findings: page.counts.total(),
            findings_only_counted: Some(page.only_counted).filter(|counts| counts.total() > 0),
            notice: forgotten_findings(operation),
        };
        // A document is shown as it is, so that it can be written to a file.
        let text = match format {
            FindingFormat::Sarif => operation.sarif(&page).to_string(),
            FindingFormat::Junit => operation.junit(&page),
            FindingFormat::Json => {
                findings.findings = page.findings;
                findings.listed()
            }
        };
        let room = operation.output().page_bytes();
        if format != FindingFormat::Json && !self.whole && text.len() > room {
            return Err(format!(
                "the document is {} bytes long, more than the {room} of an answer (--max-result-bytes): \
                 file_write with from_output and format writes it to a file, with whole: true it is given all the same, \
                 with max_findings it holds only the worst findings, and without format they are read in pages",
                text.len()
            ));
        }
        Ok((findings, text))
    }
}

impl FindingsReport {
    /// One line for each, and where to go on.
    fn listed(&self) -> String {
        let line = |finding: &Finding| finding_line(finding) + "\n";
        let lines: String = self.findings.iter().map(line).collect();
        let more = self
            .next_finding
            .map_or_else(String::new, |next| format!("; go on with from_finding {next}"));
        let only_counted = self.findings_only_counted.map_or_else(String::new, |counts| {
            format!("; only counted: {}", counts.in_words())
        });
        let notice = self.notice.iter().map(|notice| format!("\nnotice: {notice}"));
        format!(
            "{lines}[{} of {}{only_counted}{more}]{}",
            self.findings.len(),
            counted(self.total_findings, "finding"),
            notice.collect::<String>()
        )
    }
}
