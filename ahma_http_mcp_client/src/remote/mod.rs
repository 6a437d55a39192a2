//! Connections to remote servers, each kept by an actor of its own so that none can delay another.
//!
//! - [`servers`]: all mounted servers of a process; the handle that `ahma_core` holds.
//! - [`actor`]: one connection's life: connect, retry, log in, reconnect, end.
//! - [`handle`]: requests to one server, and the messages its actor takes.
//! - [`state`]: the published state of each server.
//! - [`mount`]: the purpose of a mounted server's connection: its list of tools.
//! - [`login_news`]: logins the user has not been told of yet.

mod actor;
mod handle;
mod login_news;
mod mount;
mod servers;
mod state;

pub(crate) use actor::{Actor, ConnectionHistory, Persistence, Purpose, ServerEvent};
pub(crate) use handle::{LiveConnection, ServerHandle};
pub use login_news::LoginNews;
pub(crate) use mount::ToolClient;
pub use servers::RemoteServers;
pub(crate) use state::StateBoard;
pub use state::{ServerState, Snapshot};
