//! The run that a document of findings is about. Without it, a scan that was cut off would pass for one that found nothing.

/// One run of a tool. Times are written as RFC 3339.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Invocation {
    pub command: String,
    pub directory: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// State of the operation.
    pub status: String,
    /// It ran to its end, and that was a success.
    pub succeeded: bool,
    /// Reason why it did not succeed.
    pub reason: Option<String>,
    /// Last progress.
    pub percent: Option<f64>,
    pub phase: Option<String>,
}

impl Invocation {
    /// A sentence about a run that did not succeed.
    pub(super) fn failure(&self) -> Option<String> {
        if self.succeeded {
            return None;
        }
        let mut text = match self.status.as_str() {
            "failed" => "the run failed".to_owned(),
            "timed_out" => "the run timed out".to_owned(),
            "cancelled" | "interrupted" => format!("the run was {}", self.status),
            unfinished => format!("the run is {unfinished}"),
        };
        if let Some(reason) = &self.reason {
            text.push_str(&format!(": {reason}"));
        }
        match (self.percent, &self.phase) {
            (Some(percent), Some(phase)) => text.push_str(&format!(" (at {percent:.0}%, {phase})")),
            (Some(percent), None) => text.push_str(&format!(" (at {percent:.0}%)")),
            (None, Some(phase)) => text.push_str(&format!(" (at {phase})")),
            (None, None) => {}
        }
        Some(text + "; findings may be missing")
    }
}
