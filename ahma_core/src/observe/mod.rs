//! From output bytes to progress and findings, by the rules of a tool file.

mod event;
mod rules;

pub use event::{Finding, Progress, Severity, Source, StreamEvent};
pub use rules::{RuleProblem, StreamRules, compile};
