//! The seccomp layer: system calls that no command needs and that would weaken the other layers.
//!
//! A deny list that answers `EPERM`, so that programs which merely try go on. Installing a program costs about 0.7 µs per
//! instruction, because the kernel runs it for every call number there is. So the jail puts on itself, once, everything
//! that it can do without ([`inherited_filters`]), and each command adds the few instructions of [`command_filter`].
//! In the core tier the calls of [`notification_filter`] are answered by the supervisor (`jail::broker`).

mod call_rules;
mod deny_list;
mod instructions;
mod notification;
mod sockets;

pub(crate) use deny_list::{UnixSockets, inherited_filters};
pub(crate) use instructions::command_filter;
pub(crate) use notification::{install_listener, notification_filter};

/// Newer than the libc crate; the same number on every architecture.
pub(crate) const SYS_FCHMODAT2: i64 = 452;

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
