//! The ways to a remote server: Streamable HTTP (both eras), legacy HTTP+SSE, or the pipes of a program.
//!
//! - [`http`]: both HTTP transports behind one type. The machinery of Streamable HTTP is rmcp's.
//! - [`client`]: the HTTP client below them, with tokens, retries and resumption; [`resume`] has the rules of the latter.
//! - [`legacy_sse`]: HTTP+SSE, which rmcp lacks.
//! - [`stdio`]: a server that is a program.
//! - [`link`]: what a transport notices and the protocol above it cannot see.

mod client;
mod http;
mod legacy_sse;
pub(crate) mod link;
mod resume;
pub(crate) mod stdio;

pub use ahma_common::retry::RetryPolicy;
pub use http::{HttpMcpError, HttpMcpTransport};
