//! Enforcement on macOS: the Seatbelt profile of a policy.

pub mod profile;
