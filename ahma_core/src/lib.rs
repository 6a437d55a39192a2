//! The engine behind `ahma_mcp`: tool files become tools, calls become confined processes, output becomes results.
//!
//! A call travels one straight line, each arrow one function in one module:
//!
//! ```text
//! CallToolRequest -> ToolCall -> CommandPlan -> Operation -> Outcome -> CallToolResult
//!      mcp            call        call::plan     operation    operation     mcp
//! ```
//!
//! Modules stand in layers, and each may use only those above it (`tests/it/layers.rs` keeps that true):
//! pure (`mtdf`, `catalog`, `call`, `observe`), OS (`sandbox`, `jail`, `shell`), actors (`operation`, `toolbox`),
//! protocol (`mcp`), edge (`app`).

#[cfg(not(target_os = "linux"))]
compile_error!("ahma_core needs Linux: commands are confined by Landlock, seccomp and namespaces");

pub mod call;
pub mod catalog;
pub mod mtdf;
pub mod observe;

pub mod jail;
pub mod sandbox;
pub mod shell;

pub mod operation;
pub mod toolbox;

#[cfg(feature = "mcp")]
pub mod mcp;

#[cfg(feature = "mcp")]
pub mod app;
