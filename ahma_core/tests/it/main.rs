//! The integration tests of `ahma_core`: real programs, real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a failed setup is a failure"
)]

mod layers;
mod processes;
mod streams;
