//! From output bytes to progress and findings, by the rules of a tool file.
//!
//! ```text
//! bytes -> frames -> rules -> events
//!          framing   rules    event, findings
//! ```
//!
//! [`compile`] turns a `stream` block into [`StreamRules`] once, when its file is loaded. An [`Observer`] reads the output of
//! one run by them. Everything here is a pure function of the bytes and of the time it is given: it must never start
//! anything, wait, or touch a file. Whatever a tool prints, memory stays bounded and nothing panics.

mod digest;
mod event;
mod export;
mod findings;
mod framing;
mod notes;
mod observer;
mod preset;
mod progress;
mod replay;
mod rules;
mod run_context;
pub mod stream_block;
mod unmatched;

pub use digest::Digest;
pub use event::{Finding, Progress, Severity, StreamEvent};
pub use export::{Invocation, junit, sarif};
pub use findings::{FindingBudget, FindingLog, FindingNews, FindingPage, SeverityCounts};
pub(crate) use framing::whole_characters;
pub use framing::{LineTracker, displayed};
pub use observer::Observer;
pub use replay::{ReplayedLine, replay};
pub use rules::{
    ArgumentReference, CallArguments, RuleProblem, StdioNeed, StreamRules, argument_references, compile,
    environment_problems,
};
pub use run_context::RunContext;
pub use stream_block::{Show, StreamName};
pub use unmatched::{UnmatchedRule, unmatched};

#[cfg(test)]
mod findings_tests;
#[cfg(test)]
mod observer_tests;
#[cfg(test)]
mod progress_tests;
#[cfg(test)]
mod replay_tests;
