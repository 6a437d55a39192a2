//! The guard: files that programs outside the sandbox act on later are after a command what they were before it.
//!
//! The full tier's read-only mounts keep what existed when the jail started. The guard keeps the rest: protected names that
//! did not exist, those whose mount is gone because a user replaced the file, and in the core tier all of them. It takes a
//! baseline before a command and compares with it afterwards: what was created goes to the quarantine, what was changed
//! goes there and is restored, and the result says so. Nothing is ever deleted.
//!
//! It runs outside the sandbox, so it must never follow a link that a command made: see [`entry`]. It knows protected paths
//! by name only and reads none of git's files. [`checks`] is the way in; [`baseline`] looks, [`changes`] compares,
//! [`restore`] undoes.

mod baseline;
mod changes;
mod checks;
mod entry;
mod report;
mod restore;

pub use checks::{Guard, PendingCheck};
pub use report::{ChangeKind, ProtectedChange};
