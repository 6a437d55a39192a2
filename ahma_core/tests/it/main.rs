//! The integration tests of `ahma_core`: real programs, real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod layers;
mod processes;
mod streams;
