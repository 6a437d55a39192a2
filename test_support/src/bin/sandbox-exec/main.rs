//! Stands in for `sandbox-exec` of macOS where there is none: the way commands are started there runs behind it in tests.
//!
//! It takes the same arguments and reads the profile as strictly as [`test_support::Profile`] does. Then
//! - every call that opens, makes, moves, removes or changes a file by its path, connects or binds is asked of the profile,
//!   as Seatbelt does, and refused with its error ([`monitor`], [`calls`]): also names that do not exist yet, in any case;
//! - as a second lock, which a race does not open: all mounts are read-only but for what the profile opens ([`view`]),
//!   Landlock closes what is closed to reading and writing, ports, signals and abstract sockets ([`rules`]), and there is no
//!   network where the profile opens none.
//!
//! The mark of an operation becomes a resource limit, which `kernel_stand_in.rs` of `ahma_core` reads. A process that has
//! one cannot start this program again: it fails with the words and the exit code of macOS.
//!
//! Not enforced: Mach services, sysctls, semaphores and shared memory, terminals, system sockets, ioctls, and whatever else
//! the profile says about things that Linux does not have, such as clones of files. A hard link is judged as a new file
//! and a link of the old one; what macOS asks besides is not known. `/tmp`, `/var` and `/etc` are what `/private/tmp` and
//! so on are there.

#![allow(clippy::print_stderr, reason = "a program whose messages are for people")]

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod monitor;
#[cfg(target_os = "linux")]
mod requester;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod view;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let start::Failure { code, message } = start::run(std::env::args_os().skip(1));
    eprintln!("sandbox-exec: {message}");
    ExitCode::from(code)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("only Linux needs a stand-in for sandbox-exec");
    ExitCode::FAILURE
}
