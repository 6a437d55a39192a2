//! What the tests of several crates share.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is a panic")]

mod server;
mod workspace;

use std::time::{Duration, Instant};

pub use server::{Era, Server, ServerOptions};
pub use workspace::Workspace;

/// How long a test waits for something that must happen. Generous, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Polls `condition` until it gives a value; panics after [`PATIENCE`] saying what never happened.
#[track_caller]
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
