//! The configuration of remote servers: plain values, known before anything is connected.
//!
//! [`file`] reads them from an `mcp.json`; the command line may build them directly. Nothing here touches the network or
//! a clock, and the environment is handed in as [`Variables`].
//!
//! - [`server`]: one server, its address, its program and its OAuth client.
//! - [`file`]: reads a file and collects every problem in it; [`mistakes`] finds those that leave it readable.
//! - [`substitute`]: replaces `${env:NAME}` and the like.

mod file;
#[cfg(test)]
mod file_tests;
mod mistakes;
mod server;
mod substitute;

pub use ahma_common::secret::Secret;
pub use file::{ConfigProblem, ConfigTrust, McpConfig, load};
pub use server::{HttpEndpoint, OAuthIdentity, ServerConfig, StdioCommand, TransportChoice, address};
pub use substitute::Variables;
