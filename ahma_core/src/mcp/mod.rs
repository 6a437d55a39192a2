//! The MCP server; the only module that knows rmcp.
//!
//! [`serve`] answers one client on a pair of streams until the client is gone or `shutdown` is cancelled. A request goes
//! from `handler` to the module that answers it: `call` for tools of the catalog, `builtin` for our own, `remote` for
//! those of other servers, `resources`. `convert` makes results, `error` errors, and `watcher` reports on running
//! operations. Nothing here starts a process or reads a file; operations belong to the engine and outlive their request.

mod bridge_news;
mod bridge_requests;
mod builtin;
mod call;
mod client;
mod convert;
mod error;
mod facts;
mod handler;
mod lobby;
mod log_messages;
mod progress;
#[cfg(feature = "client")]
mod remote;
#[cfg(not(feature = "client"))]
#[path = "no_remote.rs"]
mod remote;
mod report;
mod report_text;
mod resources;
mod server;
mod standstill;
mod subscriptions;
mod tasks;
mod tool_list;
mod transport;
mod watcher;

#[cfg(feature = "bridge")]
pub(crate) use self::client::{DEFAULT_SYNC_WAIT, MAX_QUIET_AWAIT};
pub(crate) use self::{
    builtin::{BuiltinTool, descriptions as builtin_tools},
    tool_list::{ToolCost, cost_of, costs},
};
pub(crate) use self::{
    remote::Remotes,
    server::{Greeting, Opened, ResultForm, SandboxNote, ServerSettings, serve},
};
