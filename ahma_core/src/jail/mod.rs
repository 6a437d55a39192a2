//! The jail: a small helper process that starts every command, already confined.
//!
//! The server never forks and never runs anything itself. It talks to the jail over one socket ([`wire`]); the jail
//! ([`role`]) prepares the sandbox once ([`prepared`]), and for each request starts a supervisor ([`supervisor`]), which
//! starts the shell or the program ([`streams`], [`child`], [`program`]), limits it ([`process_budget`], [`cgroup`]) and outlives
//! everything it starts ([`children`]). In the core tier a supervisor also makes the calls that Landlock cannot judge
//! ([`broker`], [`notified_call`], [`requester`]). [`client`] and [`process`] are the server's side.
//!
//! A process of its own, because copying a large server by fork costs milliseconds, namespaces and Landlock bind only the
//! calling thread, and a single-threaded process may run ordinary code between fork and exec.

mod broker;
mod cgroup;
mod child;
mod children;
pub(crate) mod client;
mod notified_call;
mod prepared;
mod process;
mod process_budget;
pub(crate) mod program;
mod requester;
mod role;
mod streams;
mod supervisor;
pub(crate) mod wire;

pub use client::{Jail, JailError};
#[cfg(test)]
pub(crate) use prepared::READ_SCRIPT;
pub(crate) use prepared::SCRIPT_FD;
pub(crate) use process::Requested;
pub use process::{ExitReport, ExitStatus, ProcessEvent, ProcessHandle};
pub use program::NulByte;
pub use role::run_if_asked;
