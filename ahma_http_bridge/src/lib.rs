//! Serves any stdio MCP server over HTTP: Streamable HTTP of every revision, and the older HTTP+SSE.
//!
//! The bridge reads JSON-RPC envelopes and nothing else; it never knows what a tool is. Clients share one
//! child process, or each session has its own, confined to the client's workspace.
//!
//! The way of a request: `server` accepts, `peer` looks who it is, `routes` reads it and finds its session, `session` finds its
//! child, `child` passes it on and finds the waiter when the answer comes.

mod args;
mod audit;
mod auth;
mod backend;
mod bridge;
mod child;
mod descriptors;
mod echo;
mod envelope;
mod harmless;
mod housekeeping;
mod http;
mod metrics;
mod peer;
mod pressure;
mod redact;
mod routes;
mod server;
mod session;
mod settings;
mod sse_endpoint;
mod stall;
mod stream;
mod tls;

pub use args::{ArgsError, AuthMode, BridgeArgs};
pub use audit::{AuditError, verify_audit};
pub use auth::{
    AuthSettings, IssuedToken, OAuthSettings, Secret, TokenEntry, TokenError, TokenParams, TokenSource,
    issue_token,
};
pub use child::{ChildCommand, ChildFactory, FixedCommand, Spawn};
pub use server::{ServeError, serve};
pub use settings::{BridgeSettings, ExposureError, Isolation, Limits, Times};
pub use sse_endpoint::{SseEndpoint, SsePath};
pub use tls::{TlsError, TlsSettings};
