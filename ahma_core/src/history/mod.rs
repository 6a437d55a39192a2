//! The history: every operation of every server of a user, kept after its session, its client and its server.
//!
//! One SQLite database in the state directory holds a row for each operation; output that is too long for a row is in a file
//! beside it. [`History`] is the handle of a server: its writer thread takes notes off the path of calls, and it finds
//! operations that are no longer in memory. [`HistoryReader`] is for everything that only looks, such as `ahma_mcp history`.
//!
//! An operation belongs to its principal and its scope, the `Owner`; for all others it does not exist. Every server holds a
//! lock as long as it lives, so the next reader can mark the operations that its death interrupted.
//!
//! Nothing here can fail a command: if the disk is full or the directory cannot be written, the history has gaps, which
//! [`History::trouble`] reports, and commands run as ever.

mod details;
mod directory;
mod redaction;
mod rows;

mod database;
pub(crate) mod document;
mod recovery;
mod retention;
mod shared_reader;
mod statements;
mod usage;

mod compression;
mod housekeeping;
mod writer;

pub(crate) mod export;
mod follower;
mod handle;
mod reader;
mod recall;

pub(crate) use database::HistoryError;
pub(crate) use handle::{History, HistorySettings};
pub(crate) use reader::HistoryReader;
pub(crate) use retention::KeepLimits;
pub(crate) use rows::{FindingFilter, FindingRow, OperationFilter, OperationRow, ServerRow, Span, TaskRow};
pub(crate) use shared_reader::SharedReader;
pub(crate) use usage::UsageSample;

pub(crate) use redaction::redacted_arguments;
