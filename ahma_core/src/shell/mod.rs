//! Warm processes: confined, started before they are needed, each used once.
//!
//! [`Launcher`] is the seam that operations build on: it turns a [`Script`] into a [`Running`] command, through a process
//! of the [`pool`] where one fits, else through one that a [`request`] brings. [`script`] writes what a shell reads, [`standing`] puts the wall up again when it must
//! be, and [`self_test`] tries to get out from behind it.

mod launcher;
mod pool;
mod request;
mod script;
mod self_test;
mod standing;

pub use launcher::{
    LaunchError, Launcher, LauncherSettings, NulByte, OutputPipes, PoolSettings, Running, Script, StartError,
    Stdio, TierChoice,
};
pub use self_test::{SelfTestError, probe, prove};
