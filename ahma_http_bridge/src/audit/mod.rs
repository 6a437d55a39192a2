//! The audit trail: JSON lines, each carrying the hash of the one before, so that a changed, missing or
//! inserted line shows. What the newest file lost at its end does not: nothing comes after it that could tell.
//!
//! `recorder` takes what is to be written down, `trail` is the file it goes to, `verify` reads it again, `newest` its end.

mod newest;
mod recorder;
mod trail;
mod verify;

pub use newest::newest_lines;
pub(crate) use recorder::{Audit, CallRecord, shown_arguments};
pub use verify::{AuditError, verify_audit};
