//! One stdio MCP server as a child process: started, written to, read and stopped.
//!
//! Nothing here knows HTTP, sessions or statuses. Messages that answer no request go to a [`ChildSink`]; the end of a request
//! goes to its [`Reply`] and its [`CallObserver`]. [`Backend`] keeps a child available, [`Child`] is the running process:
//! start reading there.

mod answer;
mod asking;
mod backend;
mod client_name;
mod command;
mod handle;
mod pending;
mod process;
mod tasks;

pub use command::{ChildCommand, ChildFactory, FixedCommand, Spawn};

pub(crate) use answer::{Answer, CallFailure, CallOutcome};
pub(crate) use asking::AskError;
pub(crate) use backend::{Backend, ChildSpawner, Restart, StartError, initialize_child, own_initialize};
pub(crate) use client_name::{is_for_the_bridge, named};
pub(crate) use handle::{Child, ChildLimits, ChildMessage, ChildSink, Ending};
pub(crate) use pending::{CallObserver, CallParams, ClientId, Reply, ReplySink};
