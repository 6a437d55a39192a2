//! Findings in the formats that other programs read.

mod invocation;
mod junit;
mod sarif;

pub use invocation::Invocation;
pub use junit::junit;
pub use sarif::sarif;

/// Under this name a document says how many findings are not in it.
const LEFT_OUT: &str = "findings_left_out";

#[cfg(test)]
mod export_tests;
