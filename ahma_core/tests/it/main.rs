//! The integration tests of `ahma_core`: real programs, real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test is a panic"
)]

mod admin;
mod answers;
mod arguments;
mod awaiting;
mod call_settings;
mod calls;
mod cancelling;
#[cfg(feature = "cluster")]
mod cluster;
mod command_line;
mod console;
mod console_browser;
mod credentials;
mod deaths;
mod directories;
mod doc_blocks;
mod docs;
mod early_answers;
mod endings;
mod engine;
mod escape;
mod everywhere;
mod file_tools;
mod first_steps;
mod grants;
mod hints;
mod history;
mod http_work;
#[cfg(target_os = "linux")]
mod hung_file_system;
mod jail_deaths;
mod launchers;
mod layers;
mod live;
mod mistakes;
mod names;
mod operation_states;
mod operations;
mod output;
mod ownership;
mod packs;
mod platforms;
mod process_limits;
mod processes;
mod progress;
mod readonly_shell;
mod real_tools;
mod release;
mod reload;
mod remote;
mod replayed;
mod repositories;
mod resources;
mod seatbelt;
mod sequences;
mod session;
mod shared;
mod shipped_tools;
mod standstill;
mod streams;
mod tasks;
mod terminal;
mod token_tools;
mod tool_list;
mod toolchains;
