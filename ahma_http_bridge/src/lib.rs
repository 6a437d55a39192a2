//! Serves any stdio MCP server over HTTP: Streamable HTTP of every revision, and the older HTTP+SSE.
//!
//! The bridge reads JSON-RPC envelopes (`ahma_common::envelope`) and nothing else; it never knows what a tool is. All clients
//! share one child process, or each session has its own, confined to the client's workspace.
//!
//! # Layers
//!
//! `child` → `session` → `bridge`, `http` → `routes` → `server`; a module uses only modules to its left, and
//! `tests/it/layers.rs` fails otherwise. `child` knows no HTTP, no session and no status. `session` knows no axum.
//!
//! # Processes and tasks
//!
//! | Task | Started by | Work |
//! |---|---|---|
//! | one for each connection | `server` | hyper serves it; `peer` has identified the client before a byte is read |
//! | reader of a child's output | `child/handle.rs` | finds the waiter of each answer; other messages go to the [`ChildSink`](child) |
//! | supervisor of a child | `child/handle.rs` | writes queued input, watches the exit, ends the process group, fails open calls |
//! | start of a child | `child/backend.rs` | one at a time, with growing delays while it keeps failing |
//! | sweep | `bridge.rs` | ends silent calls and idle sessions |
//! | maintenance | `maintenance.rs` | reads changed token files and certificates, samples memory and load |
//!
//! Tasks share no queue but the child's input, which is bounded; everything else is a short lock. A call is registered
//! before its line is written (`child/pending.rs`), so no answer can come too early, and every way to its end tells its reply:
//! answer, time-out, cancellation, death of the child, end of the session.
//!
//! # Path of a request
//!
//! 1. `server` accepts the connection, `routes/gate.rs` checks host, origin and credential.
//! 2. `routes/post.rs` reads the body and the envelope, and hands it to `legacy` or `modern`; `sse_legacy` is the transport of
//!    2024-11-05. All three use one `Exchange` (`routes/exchange.rs`).
//! 3. The session (`session/registry.rs`) or, without one, the client's lease (`session/sessionless.rs`) gives the child.
//!    An isolated session first finds its scope: `session/state.rs` decides, `session/session.rs` acts.
//! 4. `child/handle.rs` gives the request a number of the bridge's own and writes it. The answer gets the client's id back and
//!    goes to the waiting handler, or into the client's event stream (`session/event_stream.rs`), which can be resumed.
//!
//! # Statuses
//!
//! Below the routes there is one error, `session::RequestError`, which knows whose fault it is. `http/refusal.rs` is the one
//! place where it, or the outcome of a call, becomes a status.

#![forbid(unsafe_code)]

mod activity;
mod admin_client;
mod archive;
mod args;
mod audit;
mod auth;
mod bridge;
mod bridge_admin;
mod bridge_records;
mod bridge_sessions;
mod child;
mod console;
mod console_server;
mod dependency;
mod descriptors;
mod digest;
mod echo;
mod file_stamp;
mod harmless;
mod http;
mod isolation;
mod logins;
mod maintenance;
mod metrics;
mod operations;
mod paths;
mod peer;
mod pressure;
mod redact;
mod routes;
mod serve_error;
mod server;
mod session;
mod session_store;
mod settings;
mod sse_endpoint;
mod stall;
mod tls;
mod version;

pub use admin_client::{AdminClient, AdminClientError};
pub use ahma_common::secret::Secret;
pub use archive::{Archive, ArchiveAnswer, ArchiveError, ArchiveQuestion};
pub use args::{ArgsError, AuthMode, BridgeArgs};
pub use audit::{AuditError, newest_lines, verify_audit};
pub use auth::{
    AuthSettings, IssuedToken, OAuthSettings, Role, TokenEntry, TokenError, TokenParams, TokenSource,
    issue_token, list_tokens, revoke_token,
};
pub use child::{ChildCommand, ChildFactory, FixedCommand, Spawn};
pub use console::{Entry, Operator, ServerAccess, Visitor};
pub use console_server::serve_console;
pub use dependency::Dependency;
pub use isolation::Isolation;
pub use routes::OperatorSide;
pub use serve_error::ServeError;
pub use server::{Shutdown, serve};
pub use session_store::{SessionStore, StoreError, StoredSession};
pub use settings::{BridgeSettings, ExposureError, Limits, Times};
pub use sse_endpoint::{SseEndpoint, SsePath};
pub use tls::{TlsError, TlsSettings};
