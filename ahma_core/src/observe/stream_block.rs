//! The `stream` block of a tool file, as it stands on disk.
//!
//! Types only: [`super::compile`] checks a block and gives it its meaning.
//! The doc comments here are the descriptions in the published JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules for reading progress and findings from the output of a running tool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamBlock {
    /// Division of stdout into the pieces that rules look at. Default: `lines`. Stderr is always read in lines.
    pub framing: Option<Framing>,
    /// A built-in rule set for a standard report format on stdout. It brings its own framing.
    pub preset: Option<Preset>,
    /// Arguments added to every call so that the tool prints what the rules read.
    #[serde(default)]
    pub append_args: Vec<String>,
    /// Environment variables set for every call so that the tool prints what the rules read.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// One pipe for stdout and stderr, or one each. Default: `separate`.
    pub streams: Option<StreamMode>,
    /// Runs the tool on a pseudo-terminal, for programs that hold back their output on pipes. Implies merged streams.
    #[serde(default)]
    pub pty: bool,
    /// Part of the output that a result shows; `output` always reads all of it. Default: `output`.
    pub show: Option<Show>,
    /// The phases of the work in order. With them, each phase's own 0 to 100 becomes its share of the whole.
    #[serde(default)]
    pub phases: Vec<PhaseEntry>,
    /// Rules, applied in order until an `ignore` or `noise` rule matches. Every matching rule fires.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Bounds on what one run may make the server remember.
    pub limits: Option<Limits>,
}

/// Division of stdout into pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Lines of text, ended by a newline or a carriage return.
    #[default]
    Lines,
    /// One JSON object per line. Other lines may stand between them.
    JsonLines,
    /// One JSON document, read when it is complete.
    JsonDocument,
    /// XML, read element by element while it is written.
    Xml,
}

/// Part of the output that a result shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    /// The output without noise, then the findings.
    #[default]
    Output,
    /// The findings, then the summary lines; after a failure also the lines that no rule knows.
    Findings,
    /// After a success the summary lines only, or one line where there are none; after a failure as `findings`.
    Summary,
}

/// A built-in rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// SARIF 2.1.0, as most static analysers can print it.
    Sarif,
    /// JUnit XML, as most test runners can print it.
    Junit,
}

/// One pipe for stdout and stderr, or one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamMode {
    /// One pipe for both, so their order is exact.
    Merged,
    /// One pipe each.
    Separate,
}

/// A phase of the work: its name, or its name and its share.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PhaseEntry {
    /// A phase of weight 1.
    Name(String),
    /// A phase with its own weight.
    Weighted(WeightedPhase),
}

/// A phase and how much of the whole work it is.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedPhase {
    /// The beginning of the phase text that rules give.
    pub name: String,
    /// Share of the whole, relative to the other phases. Default: 1.
    pub weight: Option<f64>,
}

/// One rule: which pieces of output it looks at, and what they mean.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Meaning of a match.
    pub emit: Emit,
    /// Looks at one stream only. Default: both.
    pub on: Option<StreamName>,
    /// Regular expression for a line of text (no look-around, no back-references). Named groups become `{name}`.
    #[serde(rename = "match")]
    pub pattern: Option<String>,
    /// Regular expression that the line after the one of `match` must match, too. Its groups can be used in the same way.
    pub next: Option<String>,
    /// Regular expression for the line that ends a block which begins with the line of `match`. The lines between them are
    /// `{lines}`, and its groups can be used like those of `match`. The end of the output and the next line of `match` end
    /// a block, too.
    pub until: Option<String>,
    /// Regular expression for the lines of the block that `{lines}` holds, or for the part of them that its first group
    /// matches. Default: all of every line.
    pub collect: Option<String>,
    /// Conditions that must all hold: JSON pointers (`/a/b`) or XML paths (`child/@attribute`) and what they must be.
    #[serde(rename = "where", default)]
    pub conditions: BTreeMap<String, Condition>,
    /// JSON pointer to a list: the rule looks at each of its items. `*` stands for every item of a list or object.
    pub each: Option<String>,
    /// Name of the XML element that the rule looks at, when it closes.
    pub element: Option<String>,
    /// Part of the work that is done, 0 to 100.
    pub percent: Option<TemplateValue>,
    /// Name of the current phase.
    pub phase: Option<TemplateValue>,
    /// Number of items done.
    pub current: Option<TemplateValue>,
    /// Number of items in all.
    pub total: Option<TemplateValue>,
    /// Counts matches: each adds one to how many are done.
    #[serde(default)]
    pub count: bool,
    /// Time left, in seconds or as `h:mm:ss`.
    pub eta_seconds: Option<TemplateValue>,
    /// Text of a summary. Default: the line.
    pub text: Option<TemplateValue>,
    /// The finding.
    pub finding: Option<FindingTemplate>,
}

/// Meaning of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Emit {
    /// Progress of the work.
    Progress,
    /// The current phase of the work.
    Phase,
    /// Something was found.
    Finding,
    /// Nothing: later rules do not see this piece.
    Ignore,
    /// A line that sums the run up: results show it.
    Summary,
    /// A line that is kept and never shown in a result, such as `Compiling …`.
    Noise,
}

/// One of the two output streams. Merged output counts as stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamName {
    Stdout,
    Stderr,
}

/// Required value of a field.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Condition {
    /// The field is there or not.
    Exists(ExistsCondition),
    /// One of these values.
    OneOf(Vec<ConditionValue>),
    /// This value.
    Is(ConditionValue),
}

/// Presence or absence of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExistsCondition {
    /// True: the field must be there. False: it must not.
    pub exists: bool,
}

/// A plain JSON value; fields are compared with its text.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ConditionValue {
    Bool(bool),
    Number(serde_json::Number),
    String(String),
}

/// Text with references, or a translation of it.
///
/// References: `{name}` a group of `match`, `{/a/b}` a JSON pointer, `{@attribute}`, `{child/@attribute}` or `{child}` in XML,
/// `{.}` the whole piece, `{$name}` an argument of the call. `{{` and `}}` stand for braces.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TemplateValue {
    Text(String),
    Mapped(MappedTemplate),
}

/// A template whose result is translated.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MappedTemplate {
    /// The template.
    pub from: String,
    /// Translation of its result.
    #[serde(default)]
    pub map: BTreeMap<String, String>,
    /// Used when the result is empty or has no translation.
    pub default: Option<String>,
}

/// Templates for the fields of a finding. Empty results are left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindingTemplate {
    /// Sort of finding, such as `diagnostic` or `open-port`.
    pub kind: Option<TemplateValue>,
    /// `critical`, `high`, `medium`, `low` or `info`; common other words and CVSS scores are understood. Default: `info`.
    pub severity: Option<TemplateValue>,
    /// Identifier of the problem, such as a rule or check id. Default: the kind.
    pub id: Option<TemplateValue>,
    /// CVE identifier.
    pub cve: Option<TemplateValue>,
    /// CWE identifier.
    pub cwe: Option<TemplateValue>,
    /// One line that says what was found. Default: the id.
    pub title: Option<TemplateValue>,
    /// More about it.
    pub description: Option<TemplateValue>,
    /// Advice on fixing it.
    pub remediation: Option<TemplateValue>,
    /// Location, as `file:line:column` where that fits.
    pub location: Option<TemplateValue>,
}

/// Bounds on what one run may make the server remember.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Findings kept in full, the most severe first; others are only counted. Default: 1000, at most 100000.
    pub max_findings: Option<usize>,
    /// Longest line or XML tag in bytes; the rest of it is skipped. Default: 1 MiB, at most 16 MiB.
    pub max_frame_bytes: Option<usize>,
    /// Largest JSON document in bytes; a larger one is not read. Default: 64 MiB, at most 256 MiB.
    pub max_document_bytes: Option<usize>,
}
