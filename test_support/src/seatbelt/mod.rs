//! Seatbelt profiles as far as ours go: read strictly, and judged as the manual and others' reports say that macOS judges
//! them. For tests of the profile, and for the program that stands in for `sandbox-exec` where there is none.

mod judge;
mod reader;

pub use judge::{Profile, Subject};
