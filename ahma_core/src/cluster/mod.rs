//! Operations of several hosts, between the engine and `ahma_cluster`.
//!
//! On a front end, `front` hands calls over, and `follow` writes what workers publish into mirrored operations of the engine,
//! so that everything above it works as on one machine. `listing` is for operators and searches, `tools` offers what the
//! workers announce, and `sessions` records the sessions of HTTP clients. `health` is for the process that listens, which has
//! no engine.
//!
//! On a worker, `worker` claims operations and runs them with its own engine, and `publish` streams what they print.
//!
//! A front end sends the name of a tool and its arguments, never a command line: the worker plans the call with its own tool
//! files behind its own sandbox.

mod wire;

mod follow;
mod front;
mod listing;
mod sessions;
mod tools;

mod publish;
mod worker;

mod health;

pub use front::{ClusterFront, ClusterSettings};
pub use health::ClusterHealth;
pub use sessions::PoolSessions;
pub use worker::{WorkerSettings, work};
