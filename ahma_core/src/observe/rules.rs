//! Compiled stream rules.

use crate::mtdf::stream::StreamBlock;

/// A `stream` block, compiled once when its tool file is loaded.
#[derive(Debug)]
pub struct StreamRules {}

/// One mistake in a `stream` block; the pointer is relative to the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    pub pointer: String,
    pub message: String,
}

/// Compiles a block, or names everything that is wrong with it.
pub fn compile(_block: &StreamBlock) -> Result<StreamRules, Vec<RuleProblem>> {
    Ok(StreamRules {})
}
