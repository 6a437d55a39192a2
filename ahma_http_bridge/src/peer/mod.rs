//! Who is at the other end of a connection, where nobody has to prove who he is.
//!
//! Without authentication everybody on this machine may use the bridge, except the commands that it runs: they are
//! confined, and through the listener they could ask for a session in a directory that was never theirs. Never lets
//! anybody in because it could not find out who it is.
//!
//! `socket` finds the other end's socket, `process` finds out who holds it and whether that is a command. The reasons
//! are in `docs/design/2026-11-16-who-connects.md`.

#[cfg(target_os = "linux")]
mod doorkeeper;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod doorkeeper;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod socket;
mod unwelcome;

pub(crate) use doorkeeper::Doorkeeper;
pub(crate) use unwelcome::Unwelcome;

/// The other end of a connection; goes with every request that comes over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) std::net::SocketAddr);
