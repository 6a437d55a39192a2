//! The wall: what a command may read, write, run and reach, and how the kernel is told.
//!
//! [`Policy`] is data and knows no platform. [`assemble`] computes it from the user's settings, [`environment`] picks what
//! commands see of the server's environment, `linux` enforces. Nothing here starts a process: `jail` does.

mod policy;

mod assemble;
mod environment;
mod git;
mod toolchains;
mod way;

mod hint;
mod report;
mod sensitive;

pub(crate) mod directory;
pub(crate) mod plain;
pub(crate) mod removal;
mod tripwire;

pub mod macos;

pub(crate) mod linux;

pub use assemble::{Host, PolicyError, SandboxSettings, assemble};
pub use environment::environment;
pub use hint::{Circumstances, hint, hint_after_success};
pub use policy::{Access, Grant, Network, Policy, Tier};
pub use report::{Probe, Promise, SandboxReport, Verdict};
pub use sensitive::{Exposed, exposed, real_path, sensitive_places};
pub use toolchains::{Toolchain, Toolchains};
pub use tripwire::{Armed, Depth, Incident, IncidentKind, Tripwire};
