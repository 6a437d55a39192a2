//! The edge: command line, settings, logging, start and stop.
//!
//! Everything the outside says (flags, environment, working directory) is read here once and becomes [`Settings`];
//! no other layer looks at any of it, and no other knows clap.

mod args;
mod clients;
mod confine;
mod doctor;
mod doubts;
mod exit;
mod given;
mod http;
mod init;
mod list_tools;
mod logging;
mod man;
mod order;
mod perform;
mod places;
mod project;
#[cfg(feature = "client")]
mod remote;
#[cfg(not(feature = "client"))]
#[path = "no_remote.rs"]
mod remote;
mod run;
mod run_tool;
mod sandbox_report;
mod scope;
mod settings;
mod signals;
mod streams;
mod tasks;

pub use exit::{Exit, Failure};
pub use project::EnclosingProject;
#[cfg(feature = "client")]
pub use remote::{ConfigFile, RemoteSettings};
pub use run::main;
pub use settings::{ExecutionSettings, Format, LogSettings, Mode, Settings, WallSettings};
