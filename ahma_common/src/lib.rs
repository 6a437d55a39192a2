//! The foundation below `ahma_core`, `ahma_http_bridge` and `ahma_http_mcp_client`: one home for each idea that more than one
//! of them needs. It knows no tool, no HTTP and no rmcp, and it depends on none of the other crates.
//!
//! Messages:
//! - [`envelope`] reads a JSON-RPC message without taking it apart, and changes it by cutting at known offsets.
//! - [`lines::LineReader`] turns bytes into lines with bounded memory; [`outbox::Outbox`] writes messages in order, at once
//!   where the other side reads, and queues a bounded rest where it does not.
//!
//! Processes and time:
//! - [`process::ChildProcess`] is a child in its own process group: its exit is watched without reaping, and the group is
//!   killed before its number can be used again.
//! - `darwin`, on macOS alone, asks the kernel about processes.
//! - [`retry::Retry`] decides when to try again and when to give up. It neither sleeps nor looks at a clock.
//!
//! Single values:
//! - [`secret::Secret`] never shows in `Debug`; [`redaction`] finds credentials in text; [`private_file`] replaces a file of
//!   mode 0600 in one step; [`loopback`] recognises addresses of this machine.
//! - [`error_chain`] puts an error and its causes on one line; [`nearest`] guesses which known name was meant;
//!   [`ToolPatterns`] limits a client to some tools.
//!
//! Command line: [`value`] parses durations, sizes, numbers, switches and addresses; [`variables`] (feature `flags`) maps
//! flags to environment variables; [`words`] cuts texts and makes them fit for a terminal.
//!
//! Names: [`contract`] holds every string that two crates, or two processes of one product, must spell alike.

pub mod contract;
#[cfg(any(test, target_os = "macos"))]
pub mod darwin;
pub mod envelope;
mod error_chain;
pub mod lines;
pub mod loopback;
mod nearest;
pub mod outbox;
pub mod private_file;
pub mod process;
pub mod redaction;
pub mod retry;
pub mod secret;
mod tool_patterns;
pub mod value;
#[cfg(feature = "flags")]
pub mod variables;
pub mod words;

pub use error_chain::error_chain;
pub use nearest::{is_slip, nearest};
pub use tool_patterns::{PatternError, ToolPatterns};
