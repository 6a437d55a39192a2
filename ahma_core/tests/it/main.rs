//! The integration tests of `ahma_core`: real programs, real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test is a panic"
)]

mod calls;
mod command_line;
mod credentials;
mod docs;
mod endings;
mod engine;
mod escape;
mod everywhere;
mod first_steps;
mod grants;
mod launchers;
mod layers;
mod live;
mod mistakes;
mod operations;
mod output;
mod processes;
mod real_tools;
mod release;
mod reload;
mod remote;
mod replayed;
mod sequences;
mod session;
mod shared;
mod shipped_tools;
mod streams;
mod tasks;
mod terminal;
mod toolchains;
