//! The kernel's answers about processes on macOS: who they are, what they use, which connections they hold, and in which
//! sandbox they are. What only reads an answer is compiled for tests elsewhere too.

mod connection;
mod facts;
#[cfg(target_os = "macos")]
mod kernel;

pub use connection::Connection;
pub use facts::{ProcessFacts, with_descendants};
#[cfg(target_os = "macos")]
pub use kernel::{
    ProcessUsage, connection, facts, has_mark, load_average, may_look_up, processes, socket_descriptors,
    thread_count, usage,
};
