//! Compiled stream rules: what a `stream` block means, checked and ready to run.
//!
//! `compile` turns the block into these types, `apply` runs them on pieces of output. Past `compile` nothing can be wrong.

mod apply;
mod compile;
mod compile_rule;
mod field;
mod json_items;
mod pattern;
mod template;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(super) use apply::{ProgressReading, Sighting};
pub use compile::compile;
use field::Field;
pub(super) use json_items::ItemPath;
use pattern::Pattern;
use template::TextSource;
pub(super) use template::shorten;

use super::{Source, progress::Phase};
use crate::mtdf::stream::Framing;

#[cfg(test)]
mod compile_tests;
#[cfg(test)]
mod template_tests;

/// A `stream` block, compiled once when its tool file is loaded.
#[derive(Debug)]
pub struct StreamRules {
    pub(super) reading: Reading,
    rules: Vec<CompiledRule>,
    /// JSON rules by the list they look at, since a piece is one item of it. Indices into `rules`.
    json_groups: Vec<(Option<ItemPath>, Vec<usize>)>,
    pub(super) phases: Arc<[Phase]>,
    append_args: Vec<String>,
    env: BTreeMap<String, String>,
    stdio: StdioNeed,
    pub(super) limits: CheckedLimits,
}

/// How the streams of a tool must be connected for its rules to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdioNeed {
    /// One pipe for both; feed it as stdout.
    Merged,
    /// One pipe each.
    Separate,
    /// A pseudo-terminal for both; feed it as stdout.
    Pty,
}

/// One mistake in a `stream` block; the pointer is relative to the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    pub pointer: String,
    pub message: String,
}

/// How stdout is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Framed(Framing),
    /// SARIF needs look-ups between parts of the document, which rules cannot express.
    Sarif,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedLimits {
    pub(super) findings: usize,
    pub(super) frame_bytes: usize,
    pub(super) document_bytes: usize,
}

#[derive(Debug)]
struct CompiledRule {
    on: Option<Source>,
    selector: Selector,
    action: Action,
}

/// Which pieces a rule looks at.
#[derive(Debug)]
enum Selector {
    /// A line, or two that follow each other.
    Text {
        line: Pattern,
        next: Option<Pattern>,
    },
    Json {
        conditions: Vec<FieldCondition>,
    },
    Xml {
        element: String,
        conditions: Vec<FieldCondition>,
    },
}

#[derive(Debug)]
struct FieldCondition {
    field: Field,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    Present,
    Absent,
    OneOf(Vec<String>),
}

/// What a match means.
#[derive(Debug)]
enum Action {
    Ignore,
    Progress(Box<ProgressSource>),
    Finding(Box<FindingSource>),
}

#[derive(Debug, Default)]
struct ProgressSource {
    percent: Option<TextSource>,
    phase: Option<TextSource>,
    current: Option<TextSource>,
    total: Option<TextSource>,
    eta_seconds: Option<TextSource>,
    count: bool,
}

#[derive(Debug, Default)]
struct FindingSource {
    kind: Option<TextSource>,
    severity: Option<TextSource>,
    id: Option<TextSource>,
    cve: Option<TextSource>,
    cwe: Option<TextSource>,
    title: Option<TextSource>,
    description: Option<TextSource>,
    remediation: Option<TextSource>,
    location: Option<TextSource>,
}

impl StreamRules {
    /// Arguments to add to the tool's own.
    pub fn append_args(&self) -> &[String] {
        &self.append_args
    }

    /// Variables to set for the tool.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    pub fn stdio(&self) -> StdioNeed {
        self.stdio
    }

    /// How many findings a [`super::FindingLog`] for this tool keeps.
    pub fn max_findings(&self) -> usize {
        self.limits.findings
    }

    /// Whether a rule looks at two lines at a time.
    pub(super) fn has_line_pairs(&self) -> bool {
        let is_pair = |rule: &CompiledRule| matches!(&rule.selector, Selector::Text { next: Some(_), .. });
        self.rules.iter().any(is_pair)
    }

    /// Whether lines may be JSON. Tools that print such lines often log in the same way, so this goes for both streams.
    pub(super) fn has_json_lines(&self) -> bool {
        self.reading == Reading::Framed(Framing::JsonLines)
    }

    /// Whether stdout holds JSON.
    pub(super) fn has_json_text(&self) -> bool {
        match self.reading {
            Reading::Sarif => true,
            Reading::Framed(framing) => matches!(framing, Framing::JsonLines | Framing::JsonDocument),
        }
    }

    /// The XML elements that rules look at.
    pub(super) fn elements(&self) -> BTreeSet<String> {
        let element_of = |rule: &CompiledRule| match &rule.selector {
            Selector::Xml { element, .. } => Some(element.clone()),
            Selector::Text { .. } | Selector::Json { .. } => None,
        };
        self.rules.iter().filter_map(element_of).collect()
    }
}
