//! Starting confined commands.
//!
//! The server never forks. It asks the jail, a small single-threaded helper process, for a shell that is already
//! confined and waiting for its script; see `docs/design` for why. This module is the server's side and the seam that
//! `operation` builds on: [`Launcher`] starts a [`Script`], [`Running`] is what was started.

mod launcher;

pub use launcher::{
    ExitReport, ExitStatus, LaunchError, Launcher, OutputPipes, ProcessEvent, ProcessHandle, Running, Script,
    Stdio,
};
