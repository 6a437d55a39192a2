//! Against real servers on loopback: an authorization server, MCP servers of both eras, programs on pipes.

mod fixture;
mod legacy_sse;
mod login;
mod programs;
mod reconnect;
mod refresh;
mod remote;
