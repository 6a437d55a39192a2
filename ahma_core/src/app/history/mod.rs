//! `ahma_mcp history`: what ran, for people and their scripts. Shows the operations of every client and every scope of the
//! user, because they are all the user's own.
//!
//! Start with `run`; `archive` is what is looked at, `table` how it looks.

mod archive;
mod args;
mod run;
mod table;

pub(super) use args::HistoryArgs;
pub(super) use run::run;
