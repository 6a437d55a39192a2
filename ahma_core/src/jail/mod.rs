//! The jail: a small helper process that starts every command, already confined.
//!
//! The server never forks and never runs anything itself. It talks to the jail over one socket ([`wire`]); the jail
//! ([`role`]) prepares the sandbox once ([`prepared`]), and for each request starts a supervisor ([`supervisor`]), which
//! starts the shell or the program ([`streams`], [`child`], [`program`]) and outlives everything it starts ([`waiting`]).
//! [`client`], [`process`], [`standstill`] and [`usage`] are the server's side.
//!
//! The platforms meet in three enums, chosen by the tier: the sandbox that is prepared ([`wall`]), the processes of an
//! operation ([`family`]), and what a killed supervisor leaves ([`strays`]). `linux` and [`seatbelt`] stand behind them.
//! What is asked of the system itself, whatever the tier, is `system`: a file of each of the two.
//!
//! A process of its own, because copying a large server by fork costs milliseconds, namespaces and Landlock bind only the
//! calling thread, and a single-threaded process may run ordinary code between fork and exec.

mod child;
pub(crate) mod client;
mod family;
#[cfg(target_os = "linux")]
mod linux;
mod prepared;
mod process;
pub(crate) mod program;
mod role;
mod seatbelt;
mod standstill;
mod strays;
mod streams;
mod supervisor;
mod usage;
mod waiting;
mod wall;
pub(crate) mod wire;
mod wire_descriptors;
#[cfg(target_os = "linux")]
mod wire_packets;
#[cfg(any(test, not(target_os = "linux")))]
mod wire_stream;

#[cfg(target_os = "linux")]
use linux::system;
#[cfg(not(target_os = "linux"))]
use seatbelt::system;

pub use client::{Jail, JailError};
#[cfg(test)]
pub(crate) use prepared::READ_SCRIPT;
pub(crate) use prepared::SCRIPT_FD;
pub(crate) use process::Requested;
pub use process::{ExitReport, ExitStatus, ProcessEvent, ProcessHandle, SupervisorId};
pub use program::NulByte;
pub(crate) use role::VERSION;
pub use role::run_if_asked;
pub(crate) use seatbelt::mark_record::end_remains;
pub use standstill::Standstill;
pub use usage::ProcessUsage;
