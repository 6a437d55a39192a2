//! Support for the tests of several crates: servers, clients, workspaces, layers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test is a panic"
)]

mod client;
mod http;
mod layers;
mod nats;
mod seatbelt;
mod server;
mod workspace;

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

pub use client::{Client, Era};
pub use http::{HttpServer, Roots, session_at, sessionless_at};
pub use layers::{Layers, sources};
pub use nats::Nats;
pub use seatbelt::{Profile, Subject};
pub use server::{Server, ServerOptions};
pub use workspace::Workspace;

/// Deadline for something that must happen. Generous, because the machine may be busy.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A free port outside of the kernel's ephemeral range, given once in this process.
pub fn quiet_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The tool files that come with the program, of all packs, sorted.
pub fn pack_files() -> Vec<PathBuf> {
    let entries = |directory: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let packs = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs"));
    let mut files: Vec<PathBuf> = packs
        .iter()
        .filter(|path| path.is_dir())
        .flat_map(|pack| entries(pack))
        .collect();
    files.sort();
    files
}

/// The tool file of that name, of whichever pack.
pub fn pack_file(name: &str) -> PathBuf {
    let found = pack_files().into_iter().find(|path| path.ends_with(name));
    found.unwrap_or_else(|| panic!("no pack has {name}"))
}

/// The children of a process, of all its threads.
pub fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let children_of = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let lists: Vec<String> = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(children_of)
        .collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.map(|pid| pid.parse().expect("a number")).collect()
}

/// Polls `condition` until it gives a value; panics after [`TEST_TIMEOUT`] saying what never happened.
#[track_caller]
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Directory of the foreign programs that `scripts/test-programs` installs.
pub fn test_programs() -> PathBuf {
    let program = std::env::current_exe().expect("a test");
    let built = program.ancestors().nth(3).expect("target/PROFILE/deps/TEST");
    built.join("test-programs")
}

/// A program of the workspace, built by cargo if the test was started alone or `sources` are newer. `path` is where cargo
/// puts it.
pub fn built(path: &str, sources: &[PathBuf], package: &str, arguments: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let program = test
        .ancestors()
        .nth(2)
        .expect("target/PROFILE/deps/TEST")
        .join(path);
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    // Cargo would say the same, but may have to wait for another cargo first.
    let is_older = |source: &PathBuf| changed(source).is_none_or(|source| changed(&program) >= Some(source));
    if program.exists() && sources.iter().all(is_older) {
        return program;
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package])
        .args(arguments)
        .status();
    let is_built = status.is_ok_and(|status| status.success());
    assert!(
        is_built || program.exists(),
        "{} cannot be built",
        program.display()
    );
    program
}

/// The program that stands in for `sandbox-exec` of macOS.
pub fn sandbox_exec() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let sources: Vec<PathBuf> = ["bin/sandbox-exec", "seatbelt"]
            .iter()
            .flat_map(|directory| fs::read_dir(sources.join(directory)).expect("sources"))
            .map(|entry| entry.expect("a source").path())
            .collect();
        built(
            "sandbox-exec",
            &sources,
            "test_support",
            &["--bin", "sandbox-exec"],
        )
    })
}

/// Says why a test does not run here. Where `CI` is set that is a failure: a machine for tests has everything they need.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "cannot run: {reason}");
    eprintln!("skipped: {reason}");
}

/// True if a program works here; otherwise the test is to be skipped.
#[track_caller]
pub fn needs(program: impl AsRef<Path>, arguments: &[&str], to_install: &str) -> bool {
    let program = program.as_ref();
    let works = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        skip(&format!(
            "`{} {}` does not work; hint: {to_install}",
            program.display(),
            arguments.join(" ")
        ));
    }
    works
}
