//! `ahma_mcp admin`: sessions and operations of a server over HTTP, for its operators.
//!
//! `args` are its flags, `run` asks the server, `table` and `printed` show its answers to people.

mod args;
mod printed;
mod run;
mod table;

pub(super) use args::{AdminCommand, AdminOptions};
pub(super) use run::{revoke_and_stop_work, run};
