//! `--cluster`, `ahma_mcp worker` and `ahma_mcp cluster`.

mod admin;
mod args;
mod choice;
mod health;
mod keys;
mod worker;

pub(super) use admin::{ROLL_CALL, administer};
pub(crate) use args::{CLUSTER_EXAMPLES, ClusterArgs, ClusterCommand, WORKER_EXAMPLES, WorkerArgs};
pub(crate) use choice::ClusterChoice;
pub(super) use choice::{open, open_sessions, read_signer};
pub(super) use health::watch;
pub(super) use worker::worker;
