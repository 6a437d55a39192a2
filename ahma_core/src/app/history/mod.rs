//! `ahma_mcp history`: recorded operations, for people and scripts. Shows the operations of every client and every scope of
//! the user, because they are all the user's own.
//!
//! Start with `run`; `archive` reads the history, `table` formats it.

mod archive;
mod args;
mod run;
mod table;

pub(super) use args::HistoryArgs;
pub(super) use run::run;
