//! One stdio MCP server as a child process: how it is started, spoken to, listened to and stopped.
//!
//! Nothing here knows HTTP or sessions. What the child says on its own account goes to an [`Audience`].
//! Start reading at [`Child`].

mod client_name;
mod command;
mod handle;
mod inbox;
mod outbox;
mod pending;
mod process;
mod tasks;

pub use command::{ChildCommand, ChildFactory, FixedCommand, Spawn};

pub(crate) use client_name::{is_for_the_bridge, named};
pub(crate) use handle::{Audience, Child, ChildLimits, Ending, Heard};
pub(crate) use pending::{Answer, BRIDGE, CallFailure, CallParams, OwnerId, Provisional, Reply, Verdict};
