//! Enforcement on macOS: the Seatbelt profile of a policy, given to `sandbox-exec`.

mod literal;
mod profile;
mod rules;

pub use profile::{ClosedReads, profile};
pub(super) use rules::is_closed_to_reading;
