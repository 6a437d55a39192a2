//! The `stream` block of a tool file, as it stands on disk.
//!
//! Types only: what a block means, and whether it makes sense, is decided by [`crate::observe::compile`].
//! The doc comments here are the descriptions in the published JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the output of a tool is read for progress and findings while it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamBlock {
    /// How stdout is cut into the pieces that rules look at. Default: `lines`. Stderr is always read in lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
    /// A built-in rule set for a standard report format on stdout. It brings its own framing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Arguments added to every call so that the tool prints what the rules read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub append_args: Vec<String>,
    /// Environment variables set for every call so that the tool prints what the rules read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether stdout and stderr share one pipe. Default: `merged`, or `separate` where the framing or a rule needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
    /// Runs the tool on a pseudo-terminal, for programs that hold back their output on pipes. Implies merged streams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pty: bool,
    /// The phases of the work in order. With them, each phase's own 0 to 100 becomes its share of the whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseEntry>,
    /// What to look for. Every matching rule fires, in order, until an `ignore` rule matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Bounds on what one run may make the server remember.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

/// How stdout is cut into pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A built-in rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// SARIF 2.1.0, as most static analysers can print it.
    Sarif,
    /// JUnit XML, as most test runners can print it.
    Junit,
}

/// Whether stdout and stderr are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Streams {
    /// One pipe for both, so their order is exact.
    Merged,
    /// One pipe each.
    Separate,
}

/// A phase of the work: its name, or its name and its share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PhaseEntry {
    /// A phase of weight 1.
    Name(String),
    /// A phase with its own weight.
    Weighted(WeightedPhase),
}

/// A phase and how much of the whole work it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedPhase {
    /// The beginning of the phase text that rules give.
    pub name: String,
    /// Share of the whole, relative to the other phases. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// One rule: which pieces of output it looks at, and what they mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What a match means.
    pub emit: Emit,
    /// Looks at one stream only. Default: both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<StreamName>,
    /// Regular expression for a line of text (no look-around, no back-references). Named groups become `{name}`.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Regular expression that the line after the one of `match` must match, too. Its groups can be used in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Conditions that must all hold: JSON pointers (`/a/b`) or XML paths (`child/@attribute`) and what they must be.
    #[serde(rename = "where", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, Condition>,
    /// JSON pointer to a list: the rule looks at each of its items. `*` stands for every item of a list or object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// Name of the XML element that the rule looks at, when it closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// How much is done, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<TemplateValue>,
    /// What is being done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<TemplateValue>,
    /// How many are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<TemplateValue>,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<TemplateValue>,
    /// Counts matches: each adds one to how many are done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count: bool,
    /// Time left, in seconds or as `h:mm:ss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_seconds: Option<TemplateValue>,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingTemplate>,
}

/// What a match means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Emit {
    /// How far the work is.
    Progress,
    /// What the work is at.
    Phase,
    /// Something was found.
    Finding,
    /// Nothing: later rules do not see this piece.
    Ignore,
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamName {
    Stdout,
    Stderr,
}

/// What a field must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Condition {
    /// Whether the field is there.
    Exists(ExistsCondition),
    /// One of these values.
    OneOf(Vec<Scalar>),
    /// This value.
    Is(Scalar),
}

/// Whether a field must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExistsCondition {
    /// True: the field must be there. False: it must not.
    pub exists: bool,
}

/// A plain JSON value; fields are compared with its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    Bool(bool),
    Number(serde_json::Number),
    String(String),
}

/// Text with references, or a translation of it.
///
/// References: `{name}` a group of `match`, `{/a/b}` a JSON pointer, `{@attribute}`, `{child/@attribute}` or `{child}` in XML,
/// `{.}` the whole piece. `{{` and `}}` stand for braces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TemplateValue {
    Text(String),
    Mapped(MappedTemplate),
}

/// A template whose result is translated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MappedTemplate {
    /// The template.
    pub from: String,
    /// Translation of its result.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub map: BTreeMap<String, String>,
    /// Used when the result is empty or has no translation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// What a finding is made of. Empty results are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindingTemplate {
    /// What sort of finding, such as `diagnostic` or `open-port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<TemplateValue>,
    /// `critical`, `high`, `medium`, `low` or `info`; common other words and CVSS scores are understood. Default: `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<TemplateValue>,
    /// What identifies the problem, such as a rule or check id. Default: the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TemplateValue>,
    /// CVE identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cve: Option<TemplateValue>,
    /// CWE identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwe: Option<TemplateValue>,
    /// One line that says what was found. Default: the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<TemplateValue>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<TemplateValue>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<TemplateValue>,
    /// Where it is: `file:line:column` where that fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<TemplateValue>,
}

/// Bounds on what one run may make the server remember.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Findings kept in full, the most severe first; others are only counted. Default: 1000, at most 100000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_findings: Option<usize>,
    /// Longest line or XML tag in bytes; the rest of it is skipped. Default: 1 MiB, at most 16 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_frame_bytes: Option<usize>,
    /// Largest JSON document in bytes; a larger one is not read. Default: 64 MiB, at most 256 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_document_bytes: Option<usize>,
}
