//! `ahma_mcp run TOOL …`: one tool from the terminal, with the engine and the sandbox that clients get.
//!
//! stdout carries the command's output, byte for byte, and nothing else; of a line that a tool with stream rules redraws,
//! only the last state. The exit code is the command's. `run` is the path of a run; start there.

mod arguments;
mod display;
mod follow;
mod record;
mod recording;
mod redrawn_lines;
mod report;
mod run;
mod unknown_tool;

pub(super) use record::record;
pub(super) use run::run;
