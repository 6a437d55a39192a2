//! Commands behind Seatbelt, the sandbox of macOS: every one is started by `sandbox-exec`, and what it leaves is found by the
//! mark that its profile carries.
//!
//! Only `kernel_macos.rs` and `system_macos.rs` make calls that no other system has. On Linux `kernel_stand_in.rs` takes the place
//! of the first, `linux/system.rs` that of the second, and a test program that of `sandbox-exec`, so that all the rest runs
//! there in tests.

mod census;
pub(super) mod family;
mod mark;
pub(super) mod mark_record;
pub(super) mod program_role;
pub(super) mod strays;
pub(super) mod wall;

#[cfg(target_os = "macos")]
#[path = "system_macos.rs"]
pub(super) mod system;

#[cfg(target_os = "macos")]
#[path = "kernel_macos.rs"]
mod kernel;
#[cfg(not(target_os = "macos"))]
#[path = "kernel_stand_in.rs"]
mod kernel;
