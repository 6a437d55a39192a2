//! The edge: command line, settings, logging, start and stop.
//!
//! Flags, environment and working directory are read here once and become [`Settings`]; no other layer reads any of them or
//! knows clap. `run` is where a server starts, `dispatch` where a subcommand does.

mod active_sandbox;
#[cfg(feature = "bridge")]
mod admin;
mod args;
mod clients;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "bridge")]
mod console;
#[cfg(feature = "bridge")]
mod credentials;
mod dispatch;
mod doctor;
mod exit;
mod flag_order;
mod history;
#[cfg(feature = "bridge")]
mod http;
#[cfg(not(feature = "bridge"))]
#[path = "http_disabled.rs"]
mod http;
#[cfg(feature = "bridge")]
mod http_summary;
mod ignored_inputs;
mod init;
mod list_tools;
mod logging;
mod man;
mod obstacle;
mod packs;
mod private_dir;
mod project;
#[cfg(feature = "client")]
mod remote;
#[cfg(not(feature = "client"))]
#[path = "remote_disabled.rs"]
mod remote;
mod repeatable_flags;
mod run;
mod run_tool;
mod sandbox_failures;
mod sandbox_report;
mod sandbox_settings;
mod scope;
mod settings;
mod signals;
mod stdio;
mod streams;
mod subcommands;
mod table;

#[cfg(feature = "cluster")]
pub(crate) use cluster::ClusterChoice;
pub use run::main;
