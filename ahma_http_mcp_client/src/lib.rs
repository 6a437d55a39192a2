//! Client of remote MCP servers: Streamable HTTP in both protocol eras, legacy HTTP+SSE, programs on stdio, OAuth.
//!
//! - [`config`]: what an `mcp.json` says about servers.
//! - [`RemoteServers`]: connects to all of them in the background, publishes their states and tools, takes calls.
//! - [`login`] and [`logout`]: the interactive part of OAuth; tokens live in a [`TokenFile`].
//! - [`HttpMcpTransport`]: the bare transport, for those who bring their own rmcp service.
//! - [`front`]: one remote server, served on stdin and stdout.
//! - [`inspect`]: connect once, list the tools, leave.
//!
//! Nothing here writes to stdout, and no secret is ever formatted.

pub mod config;
mod front;
mod inspect;
mod login_command;
mod name;
mod oauth;
mod remote;
mod session;
mod settings;
mod shown;
mod tls;
mod transport;

pub use front::{FrontError, FrontNews, front};
pub use inspect::{Inspection, inspect};
pub use login_command::LoginCommand;
pub use name::mounted_name;
pub use oauth::{Browser, LoginError, LoginOptions, TokenFile, TokenFileError, login, logout};
pub use remote::{CallError, LoginNews, RemoteServers, ServerState, Snapshot};
pub use session::{Attempt, ConnectError, ConnectReport, Step};
pub use settings::{ClientSettings, LoginMode};
pub use shown::shown_address;
pub use transport::{HttpMcpError, HttpMcpTransport, RetryPolicy};

/// How this client introduces itself, to MCP servers whose tools it mounts and to authorization servers.
pub const CLIENT_NAME: &str = "ahma_mcp";

/// An error and its causes on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some layers print their source themselves.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A hash that every build of this program agrees on.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
