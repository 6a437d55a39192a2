//! Client of remote MCP servers: Streamable HTTP in both protocol eras, legacy HTTP+SSE, programs on stdio, OAuth.
//!
//! # Entry points
//!
//! - [`RemoteServers`] connects to all configured servers in the background, publishes their states and tools, and takes
//!   calls. [`front`] serves one remote server on stdin and stdout. [`inspect`] connects once, lists the tools, and leaves.
//! - [`config`] reads an `mcp.json`. [`login`] and [`logout`] are the interactive part of OAuth; tokens are in a
//!   [`TokenFile`]. [`HttpMcpTransport`] is the bare transport, for programs that bring their own rmcp service.
//!
//! # Tasks and messages
//!
//! Each server has one task, its actor (`remote/actor.rs`), which owns the connection. It publishes a [`ServerState`] on a
//! `watch` channel. Senders of requests hold a `ServerHandle` (`remote/handle.rs`): they borrow the live connection,
//! and tell the actor by `Control` messages to look after it (`Check`) or that a login is required (`LogIn`). The
//! transport reports what the protocol cannot see by `LinkEvent`s (`transport/link.rs`), and a task for each subscription
//! reports announced changes (`session/changes.rs`). What a connection is for is the actor's `Purpose`: a mounted server
//! (`remote/mount.rs`) keeps its tools listed; a front (`front/server_side.rs`) passes everything on to its client.
//!
//! # A call
//!
//! [`RemoteServers::call`] waits until the state is `Ready`, then sends the request over the borrowed connection
//! (`session/request.rs`). Progress is taken out of the message flow in order (`session/tap.rs`) and goes to the caller.
//! Dropping the call cancels it at the server. A request that may have arrived is never sent twice; its failure is a
//! [`RemoteError`], which says whose [`Fault`] it is.
//!
//! # A reconnect
//!
//! The connection is lost when its pipe or stream ends, when the transport has used up its retries, or when a check
//! fails. The actor closes it, publishes `Connecting`, and tries again with growing delays. After the last retry the
//! state is `Failed`; a request, or a minute, brings the next attempt. Finding the transport and the era is
//! `session/connect.rs`.
//!
//! # A login
//!
//! A challenge ends the connection. The actor publishes `LoginRequired`, starts `oauth/login.rs` and adds the link when
//! it has one. The browser returns to `oauth/callback.rs`; rmcp redeems the code, `oauth/store.rs` saves the tokens, and
//! the actor connects again. A login of another process is noticed by the changed token file (`oauth/pending.rs`).
//!
//! # Layers
//!
//! `name`, `shown`, `tls`, `login_command` < `config` < `oauth` < `transport` < `settings` < `session` < `error` < `remote`
//! < `front`, `inspect`. A module uses only those before it; `tests/it/layers.rs` checks that.
//!
//! Nothing here writes to stdout, and no secret is ever formatted.

#![forbid(unsafe_code)]

pub mod config;
mod error;
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

pub use error::{Fault, RemoteError};
pub use front::{FrontNews, front};
pub use inspect::{Inspection, inspect};
pub use login_command::LoginCommand;
pub use name::{CLIENT_NAME, mounted_name};
pub use oauth::{
    Browser, LoginError, LoginOptions, TokenFile, TokenFileError, login, logout, open_in_browser,
};
pub use remote::{LoginNews, RemoteServers, ServerState, Snapshot};
pub use session::{Attempt, ConnectReport, Step};
pub use settings::{ClientSettings, LoginMode};
pub use shown::shown_address;
pub use transport::{HttpMcpError, HttpMcpTransport, RetryPolicy};
