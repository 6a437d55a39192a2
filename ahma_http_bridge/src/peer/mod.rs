//! Identifies the process at the other end of a connection, where clients need no credential.
//!
//! Without authentication every process on this machine may use the bridge, except the commands that it runs: they are
//! confined, and through the listener they could ask for a session in a directory that was never theirs. A process that cannot be
//! identified is never let in.
//!
//! `socket` finds the other end's socket, `process` finds out who holds it and whether that is a command. The reasons
//! are in `docs/design/2026-11-16-who-connects.md`.

mod check;
#[cfg(target_os = "linux")]
mod process;
#[cfg(not(target_os = "linux"))]
#[path = "process_macos.rs"]
mod process;
mod rejected;
#[cfg(target_os = "linux")]
mod socket;

pub(crate) use check::PeerCheck;
pub(crate) use rejected::PeerRejected;

/// The other end of a connection; goes with every request that comes over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: std::net::SocketAddr,
    /// Our end.
    pub(crate) ours: std::net::SocketAddr,
}
