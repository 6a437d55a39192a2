//! Other MCP servers: which ones are mounted, logging in to them, and a front for a single one.
//!
//! A file that the user names is trusted. A file that is discovered in the scope is data of that project: it must grant
//! nothing that a command in the scope does not have already. `source` keeps that.

mod args;
mod front;
mod login;
mod mount;
mod program;
mod say;
mod source;

pub(crate) use args::{AccountArgs, LoginArgs, RemoteArgs};
pub(crate) use front::front;
pub(crate) use login::{login, logout};
pub(crate) use mount::{Mount, is_configured, mount};
pub(crate) use source::RemoteSettings;
