//! The edge: command line, settings, logging, start and stop.
//!
//! Everything the outside says (flags, environment, working directory) is read here once and becomes [`Settings`];
//! no other layer looks at any of it. Nothing here knows how a tool is called or a command is run.

mod args;
mod confine;
mod exit;
mod http;
mod list_tools;
mod logging;
mod places;
mod run;
mod sandbox_report;
mod settings;
mod signals;
mod streams;
mod value;

pub use exit::{Exit, Failure};
pub use run::main;
pub use settings::{ExecutionSettings, Format, LogSettings, Mode, Settings, WallSettings};
