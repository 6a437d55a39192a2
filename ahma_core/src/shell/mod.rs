//! Idle processes: confined, started before they are needed, each used once.
//!
//! [`Launcher`] is the interface that operations build on: it turns a [`Script`] into a [`RunningProcess`], through an
//! [`idle_process`] of the [`pool`] where one fits, else through a new one. [`script`] writes what a shell reads,
//! [`sandbox_instance`] replaces the jail or the whole sandbox when it must be, and [`self_test`] tries to escape from it.

mod errors;
mod idle_process;
mod launcher;
mod pool;
mod sandbox_instance;
mod script;
mod self_test;
mod settings;

pub use errors::{LaunchError, NulByte, StartError};
pub use idle_process::{OutputPipes, RunningProcess, Stdio};
pub(crate) use launcher::project_directories;
pub use launcher::{Launcher, Script};
pub use self_test::{SelfTestError, probe, prove};
pub use settings::{LauncherSettings, PoolSettings, SeatbeltSettings, TierChoice};
