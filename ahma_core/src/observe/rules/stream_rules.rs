//! The types that a `stream` block is compiled into.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{ItemPath, field::Field, pattern::Pattern, template::TextSource};
use crate::observe::{
    StreamName,
    progress::Phase,
    stream_block::{Framing, Show},
};

/// A `stream` block, compiled once when its tool file is loaded.
#[derive(Debug)]
pub struct StreamRules {
    pub(in crate::observe) reading: Reading,
    pub(super) rules: Vec<CompiledRule>,
    /// Number of those that stand in the block; the others are a preset's.
    pub(super) own_rules: usize,
    /// JSON rules by the list they look at, since a piece is one item of it. Indices into `rules`.
    pub(super) json_groups: Vec<(Option<ItemPath>, Vec<usize>)>,
    pub(in crate::observe) phases: Arc<[Phase]>,
    pub(super) append_args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) stdio: StdioNeed,
    pub(super) show: Show,
    /// Every `{$name}` of the templates.
    pub(super) argument_references: Vec<ArgumentReference>,
    pub(in crate::observe) limits: CheckedLimits,
}

/// Connection of a tool's streams that its rules need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdioNeed {
    /// One pipe for both; feed it as stdout.
    Merged,
    /// One pipe each.
    Separate,
    /// A pseudo-terminal for both; feed it as stdout.
    Pty,
}

/// A `{$name}` and its place; the pointer is relative to the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentReference {
    pub pointer: String,
    pub name: String,
}

/// One mistake in a `stream` block; the pointer is relative to the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    pub pointer: String,
    pub message: String,
}

/// Reading of stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::observe) enum Reading {
    Framed(Framing),
    /// SARIF needs look-ups between parts of the document, which rules cannot express.
    Sarif,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::observe) struct CheckedLimits {
    pub(in crate::observe) findings: usize,
    pub(in crate::observe) frame_bytes: usize,
    pub(in crate::observe) document_bytes: usize,
}

#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) on: Option<StreamName>,
    pub(super) selector: Selector,
    pub(super) action: RuleAction,
}

/// Selects the pieces a rule looks at.
#[derive(Debug)]
pub(super) enum Selector {
    /// A line, or two that follow each other.
    Text {
        line: Pattern,
        next: Option<Pattern>,
    },
    /// A line, those that follow it, and the one that ends them.
    Block {
        line: Pattern,
        until: Pattern,
        collect: Option<Pattern>,
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
pub(super) struct FieldCondition {
    pub(super) field: Field,
    pub(super) expected: Expected,
}

#[derive(Debug)]
pub(super) enum Expected {
    Present,
    Absent,
    OneOf(Vec<String>),
}

/// Meaning of a match.
#[derive(Debug)]
pub(super) enum RuleAction {
    Ignore,
    Noise,
    /// Without a source, the line itself.
    Summary(Option<TextSource>),
    Progress(Box<ProgressSource>),
    Finding(Box<FindingSource>),
}

#[derive(Debug, Default)]
pub(super) struct ProgressSource {
    pub(super) percent: Option<TextSource>,
    pub(super) phase: Option<TextSource>,
    pub(super) current: Option<TextSource>,
    pub(super) total: Option<TextSource>,
    pub(super) eta_seconds: Option<TextSource>,
    pub(super) count: bool,
}

#[derive(Debug, Default)]
pub(super) struct FindingSource {
    pub(super) kind: Option<TextSource>,
    pub(super) severity: Option<TextSource>,
    pub(super) id: Option<TextSource>,
    pub(super) cve: Option<TextSource>,
    pub(super) cwe: Option<TextSource>,
    pub(super) title: Option<TextSource>,
    pub(super) description: Option<TextSource>,
    pub(super) remediation: Option<TextSource>,
    pub(super) location: Option<TextSource>,
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

    /// Part of the output that a result shows.
    pub fn show(&self) -> Show {
        self.show
    }

    /// True if a rule knows noise.
    pub fn has_noise(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| matches!(rule.action, RuleAction::Noise))
    }

    /// True if a line is noise. Rules before the one that says so may have read it.
    pub fn is_noise(&self, line: &str) -> bool {
        let matching = |rule: &&CompiledRule| match &rule.selector {
            Selector::Text {
                line: pattern,
                next: None,
            } => pattern.captures(line).is_some(),
            Selector::Text { .. } | Selector::Block { .. } | Selector::Json { .. } | Selector::Xml { .. } => {
                false
            }
        };
        let stopping = |rule: &&CompiledRule| matches!(rule.action, RuleAction::Noise | RuleAction::Ignore);
        let first = self.rules.iter().filter(stopping).find(matching);
        first.is_some_and(|rule| matches!(rule.action, RuleAction::Noise))
    }

    /// The arguments of the call that the rules use.
    pub fn argument_references(&self) -> &[ArgumentReference] {
        &self.argument_references
    }

    /// Number of findings that a `FindingLog` for this tool keeps.
    pub fn max_findings(&self) -> usize {
        self.limits.findings
    }

    /// True if a rule looks at two lines at a time.
    pub(in crate::observe) fn has_line_pairs(&self) -> bool {
        let is_pair = |rule: &CompiledRule| matches!(&rule.selector, Selector::Text { next: Some(_), .. });
        self.rules.iter().any(is_pair)
    }

    /// True if lines may be JSON. Tools that print such lines often log in the same way, so this goes for both streams.
    pub(in crate::observe) fn has_json_lines(&self) -> bool {
        self.reading == Reading::Framed(Framing::JsonLines)
    }

    /// True if stdout holds JSON.
    pub(in crate::observe) fn has_json_text(&self) -> bool {
        match self.reading {
            Reading::Sarif => true,
            Reading::Framed(framing) => matches!(framing, Framing::JsonLines | Framing::JsonDocument),
        }
    }

    /// The XML elements that rules look at.
    pub(in crate::observe) fn elements(&self) -> BTreeSet<String> {
        let element_of = |rule: &CompiledRule| match &rule.selector {
            Selector::Xml { element, .. } => Some(element.clone()),
            Selector::Text { .. } | Selector::Block { .. } | Selector::Json { .. } => None,
        };
        self.rules.iter().filter_map(element_of).collect()
    }
}
