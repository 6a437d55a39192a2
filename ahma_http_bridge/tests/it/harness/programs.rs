//! The fake server, and waiting for things to happen.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) const TEST_TIMEOUT: Duration = test_support::TEST_TIMEOUT;

/// The fake server, built if the test was started alone.
pub(crate) fn fake_mcp() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fake_mcp.rs");
        test_support::built(
            "examples/fake_mcp",
            &[source],
            env!("CARGO_PKG_NAME"),
            &["--example", "fake_mcp"],
        )
    })
}

pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie is not alive: its parent has not looked yet.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits for something that must happen, without blocking the runtime.
pub(crate) async fn eventually(what: &str, mut happened: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !happened().await {
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
