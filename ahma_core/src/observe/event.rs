//! Events read from an output stream.

use serde::{Deserialize, Serialize};

use super::SeverityCounts;

/// One thing that a rule saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum StreamEvent {
    Progress(Progress),
    Finding(Finding),
    /// Findings past the limit: they count, but nothing else of them is kept.
    FindingsOmitted(SeverityCounts),
    /// Something could not be read, so findings may be missing; said once for each reason.
    Notice {
        text: String,
    },
}

/// Progress of the work. Percent only rises.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Number of items done, where the tool counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<u64>,
    /// Number of items in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_seconds: Option<f64>,
}

/// One thing that a tool found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub severity: Severity,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cve: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwe: Option<String>,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// Severity of a finding, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

impl Finding {
    /// Bytes of memory it takes.
    pub(super) fn held_bytes(&self) -> usize {
        let optional = [
            &self.kind,
            &self.cve,
            &self.cwe,
            &self.description,
            &self.remediation,
            &self.location,
        ];
        let texts = optional.into_iter().flatten().map(String::len).sum::<usize>();
        size_of::<Self>() + self.id.len() + self.title.len() + texts
    }

    /// Bytes it takes in an answer.
    pub(super) fn json_bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |bytes| bytes.len())
    }
}

impl Severity {
    /// Least first.
    pub(super) const ALL: [Self; 5] = [Self::Info, Self::Low, Self::Medium, Self::High, Self::Critical];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// Understands our five words, those that common tools use instead, and CVSS scores.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let word = text.trim().to_ascii_lowercase();
        Some(match word.as_str() {
            "critical" | "crit" | "fatal" | "blocker" | "emergency" | "alert" => Self::Critical,
            "high" | "error" | "err" | "severe" | "major" | "important" => Self::High,
            "medium" | "moderate" | "warning" | "warn" => Self::Medium,
            "low" | "minor" | "note" | "notice" | "negligible" => Self::Low,
            "info" | "information" | "informational" | "none" | "hint" | "help" | "debug" => Self::Info,
            score => Self::from_cvss(score.parse().ok()?)?,
        })
    }

    /// The rating that CVSS 3.1 gives to a score.
    fn from_cvss(score: f64) -> Option<Self> {
        match score {
            9.0..=10.0 => Some(Self::Critical),
            7.0..9.0 => Some(Self::High),
            4.0..7.0 => Some(Self::Medium),
            0.1..4.0 => Some(Self::Low),
            0.0..0.1 => Some(Self::Info),
            _ => None,
        }
    }
}
