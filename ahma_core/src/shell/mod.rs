//! Warm shells: confined, started before they are needed, each used once.
//!
//! [`Launcher`] is the seam that operations build on: it turns a [`Script`] into a [`Running`] command, through a warm
//! shell of the [`pool`] where one fits. [`script`] writes what the shell reads.

mod launcher;
mod pool;
mod script;
mod self_test;

pub use launcher::{
    LaunchError, Launcher, LauncherSettings, NulByte, OutputPipes, PoolSettings, Running, Script, StartError,
    Stdio, TierChoice,
};
pub use self_test::{SelfTestError, probe, prove};
