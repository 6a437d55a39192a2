//! The way of macOS, run on Linux: commands are started by a program that stands in for `sandbox-exec` and enforces the
//! profile it is given. What `everywhere.rs`, `processes.rs` and the attempts to escape show of it is not repeated here.

use test_support::ServerOptions;

/// Flags that have commands started as on macOS.
pub(crate) fn flags() -> [String; 4] {
    let stand_in = test_support::sandbox_exec().display().to_string();
    [
        "--sandbox-tier".to_owned(),
        "seatbelt".to_owned(),
        "--sandbox-exec".to_owned(),
        stand_in,
    ]
}

/// A server whose commands are started as on macOS.
pub(crate) fn confined(options: ServerOptions) -> ServerOptions {
    options.args(flags())
}
