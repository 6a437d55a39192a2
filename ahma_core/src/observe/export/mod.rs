//! Findings in the formats that other programs read.

mod junit;
mod sarif;

pub use junit::junit;
pub use sarif::sarif;

#[cfg(test)]
mod export_tests;
