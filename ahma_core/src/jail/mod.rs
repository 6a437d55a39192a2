//! The jail: a small helper process that starts every command, already confined.
//!
//! The server never forks and never runs anything itself. It talks to the jail over one socket ([`wire`]); the jail
//! ([`role`]) prepares the sandbox once ([`prepared`]), and for each request starts a supervisor ([`supervisor`]), which
//! starts the shell or the program ([`streams`], [`child`], [`program`]) and outlives everything it starts ([`waiting`]).
//! What only Linux has stands in [`linux`]: limits by namespace and cgroup, the walk through the process tree, and the
//! broker, which in the core tier makes the calls that Landlock cannot judge. [`client`], [`process`] and [`standstill`] are the
//! server's side.
//!
//! A process of its own, because copying a large server by fork costs milliseconds, namespaces and Landlock bind only the
//! calling thread, and a single-threaded process may run ordinary code between fork and exec.

mod child;
pub(crate) mod client;
mod linux;
mod prepared;
mod process;
pub(crate) mod program;
mod role;
mod standstill;
mod streams;
mod supervisor;
mod waiting;
pub(crate) mod wire;
mod wire_packets;

pub use client::{Jail, JailError};
#[cfg(test)]
pub(crate) use prepared::READ_SCRIPT;
pub(crate) use prepared::SCRIPT_FD;
pub(crate) use process::Requested;
pub use process::{ExitReport, ExitStatus, ProcessEvent, ProcessHandle, SupervisorId};
pub use program::NulByte;
pub use role::run_if_asked;
pub use standstill::Standstill;
