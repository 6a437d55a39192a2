//! Built-in readers for standard report formats, so that a tool file needs one word for them.

mod junit;
mod sarif;

pub(super) use junit::junit_rules;
pub(super) use sarif::read_sarif;

#[cfg(test)]
mod preset_tests;
