//! The events of an operation, as they stand in its log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::SignedRequest;

/// One event. Which of them count is decided by [`Folded`](crate::Folded) alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A front end took a call.
    Queued {
        request: SignedRequest,
        /// It may run again after the loss of its worker.
        rerun: bool,
    },
    /// A worker wants to run it.
    Claim {
        attempt: u32,
        worker: String,
        /// Tells this claim from every other.
        nonce: String,
    },
    /// It is not to run any more.
    Drop {
        attempt: u32,
        state: String,
        why: String,
    },
    /// A front end has not heard of its worker for a lease.
    Lost { attempt: u32, worker: String },
    /// It has ended, and nothing of it is left.
    End(End),
    /// A client was given its result.
    Collected,
    /// Its output was dropped, because its principal keeps too much.
    OutputDropped,
    /// A front end made a task of it.
    Task { id: String, life_ms: u64 },
}

/// The end of an operation as its worker reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub attempt: u32,
    /// That of the claim.
    pub nonce: String,
    pub state: String,
    /// Bytes of output that were published.
    pub bytes: u64,
    /// Number of findings that were published.
    pub findings: u64,
    /// The outcome, in the words of those who make and read it.
    pub outcome: Value,
}
