//! Integration tests of `ahma_core`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a failed setup is a failure"
)]

mod streams;
