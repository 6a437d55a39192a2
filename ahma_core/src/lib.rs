//! The engine of `ahma_mcp`: tool files become MCP tools, calls become confined processes, output becomes results.
//!
//! # Path of a call
//!
//! A call is a chain of values. Each arrow is one function in one module, and data only goes forward:
//!
//! ```text
//! CallToolRequest -> ToolCall -> CommandPlan -> Operation -> Outcome -> CallToolResult
//!      mcp            call        call::plan     operation    operation     mcp
//! ```
//!
//! `mcp` receives a `tools/call` and [`call`] checks every argument against the tool in the [`catalog`]. The plan is an exact
//! argument list, a directory, a timeout and a mode; from here on nothing is validated again. [`operation`] queues it and asks
//! [`shell`] for a confined process that is already waiting. Output comes back on one pipe into a spool, through [`observe`] if
//! the tool has stream rules. The one outcome wakes everything that waits for it.
//!
//! # Layers
//!
//! Each module may use only modules of the layers before its own; `tests/it/layers.rs` checks it.
//!
//! | Layer | Modules | May |
//! |---|---|---|
//! | pure | [`mtdf`] (tool files), [`catalog`] (tools offered), [`call`] (arguments to plan), [`observe`] (output to progress and findings) | compute: no I/O, no clock |
//! | OS | [`sandbox`] (policy and enforcement), [`jail`] (the helper process), [`shell`] (the pool and the launcher) | use the kernel |
//! | actors | [`operation`] (runs plans), [`toolbox`] (follows the tools directory), [`history`] (keeps what ran) | use tasks, channels and time |
//! | protocol | `mcp` | use rmcp |
//! | pages | `console` | show the history to people |
//! | edge | `app` | read flags, environment and files of the user |
//!
//! # Processes
//!
//! The server runs no command itself. Before it has threads it starts the jail, the same binary in a hidden role, which sets up
//! the sandbox and starts one supervisor for each command. A supervisor outlives the jail and kills the whole process tree
//! when its command or the server ends.
//!
//! # Where to start reading
//!
//! - `operation/run.rs`: one command from start to outcome, as a state machine.
//! - `app/run.rs`: from `main` to a serving process.
//! - `jail/wire.rs`: what server and jail say to each other.
//! - `ARCHITECTURE.md`: all crates, processes and the glossary.
//!
//! The features `mcp`, `bridge`, `client` and `cluster` can be left out; without them this is the bare tool engine.

// A build with every feature is checked for dead code; smaller ones lack some callers.
#![cfg_attr(
    not(all(feature = "mcp", feature = "bridge", feature = "client", feature = "cluster")),
    allow(dead_code, unused_imports, unused_mut)
)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("ahma_core needs Linux or macOS: only their sandboxes are known here");

pub mod call;
pub mod catalog;
pub mod mtdf;
pub mod observe;

pub mod files;
pub mod jail;
pub mod sandbox;
pub mod shell;

pub mod operation;
pub mod toolbox;

pub mod history;

#[cfg(feature = "cluster")]
pub mod cluster;

#[cfg(feature = "mcp")]
pub mod mcp;

#[cfg(feature = "bridge")]
pub mod console;

#[cfg(feature = "mcp")]
pub mod app;
