//! A bridge on a free port with `fake_mcp` as its child, and a client for it.
//!
//! `bridge` runs in the test's process, `process` is the real binary; `client` and `events` talk to either.

mod bridge;
mod client;
mod events;
mod process;
mod programs;

pub(crate) use bridge::Bridge;
pub(crate) use client::{BOTH, Client, JSON, http_client, initialize, tool_call, with_token};
pub(crate) use events::Events;
pub(crate) use process::BridgeProcess;
pub(crate) use programs::{TEST_TIMEOUT, eventually, fake_mcp, is_alive};
