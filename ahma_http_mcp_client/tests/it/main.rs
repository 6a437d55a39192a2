//! Against real servers on loopback: an authorization server, MCP servers of both eras, programs on pipes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

mod fixture;
mod front;
mod layers;
mod legacy_sse;
mod login;
mod programs;
mod reconnect;
mod refresh;
mod remote;
