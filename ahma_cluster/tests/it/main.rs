//! The protocol against a real NATS server. What the workers here run is a closure; real commands are run by the tests of
//! `ahma_core`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is a panic")]

mod layers;
mod once;
mod output;
mod permissions;
mod pool;
mod sessions;
mod verdicts;
