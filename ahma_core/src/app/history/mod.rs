//! `ahma_mcp history`: what ran, for people and their scripts. Shows the operations of every client and every scope of the
//! user, because they are all the user's own.
//!
//! Start with `run`; `table` and `document` are how things look.

mod archive;
mod args;
mod document;
mod export;
mod run;
mod table;

pub(super) use args::HistoryArgs;
pub(super) use run::run;
