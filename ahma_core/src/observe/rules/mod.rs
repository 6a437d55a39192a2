//! Compiled stream rules: what a `stream` block means, checked and ready to run.
//!
//! `compile` turns the block into the types of `stream_rules`, `apply` runs them on pieces of output. After `compile` nothing
//! can be wrong.

mod apply;
mod blocks;
mod compile;
mod compile_rule;
mod compile_selector;
mod field;
mod json_items;
mod pattern;
mod stream_rules;
mod template;
mod trial;

pub(super) use apply::{LineUse, ProgressReading, RuleContext, Sighting};
pub(super) use blocks::LineContext;
pub use compile::{argument_references, compile, environment_problems};
pub use field::CallArguments;
pub(super) use json_items::{ItemPath, ObjectFields};
pub(super) use stream_rules::Reading;
pub use stream_rules::{ArgumentReference, RuleProblem, StdioNeed, StreamRules};
pub(super) use trial::{RuleKind, RuleSight};

#[cfg(test)]
mod compile_tests;
#[cfg(test)]
mod template_tests;
