//! `--cluster`, `ahma_mcp worker` and `ahma_mcp cluster`.

mod admin;
mod args;
mod choice;
mod keys;
mod worker;

pub(super) use admin::administer;
pub(crate) use args::{CLUSTER_EXAMPLES, ClusterArgs, ClusterCommand, WORKER_EXAMPLES, WorkerArgs};
pub use choice::ClusterChoice;
pub(super) use choice::open;
pub(super) use worker::worker;
