//! The sandbox: everything that confines a command.
//!
//! [`Policy`] says what commands may read, write, run and reach; it is data and knows no platform. [`assemble`] computes it from the user's settings, [`environment`] picks what
//! commands see of the server's environment, `linux` enforces. Nothing here starts a process: `jail` does.

mod platform;
mod policy;

mod assemble;
mod environment;
mod protected;
mod toolchains;
mod worktree;

mod hint;
mod report;
mod resolved_path;
mod sensitive;

pub(crate) mod directory;
mod guard;
pub(crate) mod held;
pub(crate) mod limits;
pub(crate) mod regular_file;
pub(crate) mod removal;

pub mod seatbelt;

#[cfg(target_os = "linux")]
pub(crate) mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::landlock::kernel_abi as landlock_abi;

/// The interface version of Landlock, which only Linux has.
#[cfg(not(target_os = "linux"))]
pub(crate) fn landlock_abi() -> i32 {
    0
}

pub use assemble::{Host, PolicyError, SandboxSettings, assemble};
pub use environment::environment;
pub use guard::{ChangeKind, Guard, PendingCheck, ProtectedChange};
pub use hint::{HintContext, hint, hint_about_check, hint_after_success};
pub use platform::Platform;
pub use policy::{Access, Grant, Network, Policy, Tier};
pub use report::{Probe, ProbeOutcome, Promise, SandboxReport};
pub use sensitive::{Exposed, exposed, places_of_keys, real_path, sensitive_places};
pub use toolchains::{Toolchain, Toolchains};
