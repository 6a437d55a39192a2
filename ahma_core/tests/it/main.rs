//! The integration tests of `ahma_core`: real programs, real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test is a panic"
)]

mod calls;
mod command_line;
mod endings;
mod engine;
mod escape;
mod launchers;
mod layers;
mod operations;
mod output;
mod processes;
mod reload;
mod sequences;
mod session;
mod shipped_tools;
mod streams;
mod toolchains;
