//! Serves any stdio MCP server over HTTP: Streamable HTTP of every revision, and the older HTTP+SSE.
//!
//! The bridge reads JSON-RPC envelopes and nothing else; it never knows what a tool is. Clients share one
//! child process, or each session has its own, confined to the client's workspace.
//!
//! The way of a request: `server` accepts, `routes` reads it and finds its session, `session` finds its
//! child, `child` passes it on and finds the waiter when the answer comes.

mod args;
mod auth;
mod backend;
mod bridge;
mod child;
mod echo;
mod envelope;
mod http;
mod routes;
mod server;
mod session;
mod settings;
mod stream;

pub use args::BridgeArgs;
pub use auth::AuthSettings;
pub use child::{ChildCommand, ChildFactory, FixedCommand, Spawn};
pub use server::serve;
pub use settings::{BridgeSettings, Isolation, Limits, Times};
