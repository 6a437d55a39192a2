//! The jail: a small helper process that starts every command, already confined.
//!
//! The server never forks and never runs anything itself. It talks to the jail over one socket ([`wire`]); the jail
//! ([`role`]) prepares the wall once ([`cell`]), and for each request makes an owner ([`owner`]) that starts the shell
//! or the program ([`child`], [`program`]) and outlives everything it starts ([`children`]); in the core tier it also answers what
//! Landlock cannot ([`broker`], [`asker`], [`population`]). [`client`] and [`process`] are the server's side.
//!
//! Why a process of its own: copying a large server by fork costs milliseconds, namespaces and Landlock bind only the
//! calling thread, and a single-threaded helper may run ordinary code between fork and exec.

mod asker;
mod broker;
mod cell;
mod child;
mod children;
pub(crate) mod client;
mod owner;
mod population;
mod process;
pub(crate) mod program;
mod role;
pub(crate) mod wire;

#[cfg(test)]
pub(crate) use cell::READ_SCRIPT;
pub(crate) use cell::SCRIPT_FD;
pub use client::{Helper, JailError};
pub(crate) use process::Beginning;
pub use process::{ExitReport, ExitStatus, ProcessEvent, ProcessHandle};
pub use program::NulByte;
pub use role::run_if_asked;
