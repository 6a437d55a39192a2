//! Other hosts that run calls, as a front end sees them.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use futures::future::BoxFuture;

use super::{CallOrigin, Operation, OperationId, Principal, Snapshot};
use crate::call::{CommandPlan, ToolCall};

/// Runs calls on other hosts. Its operations are known to the engine of the front end while they are of interest there, and
/// are followed like its own.
pub trait Cluster: fmt::Debug + Send + Sync {
    /// Hands a call over. The error says why that was not possible.
    fn submit<'a>(
        &'a self,
        origin: CallOrigin,
        call: ToolCall,
        plan: &'a CommandPlan,
        may_rerun: bool,
    ) -> BoxFuture<'a, Result<Operation, String>>;

    /// An operation, whichever front end took its call.
    fn find<'a>(&'a self, whose: Whose<'a>, id: &'a str) -> BoxFuture<'a, Option<Operation>>;

    /// Operations in the log of the pool, the newest first.
    fn list<'a>(&'a self, wanted: PoolFilter<'a>) -> BoxFuture<'a, Vec<PoolOperation>>;

    /// Makes the operations of a principal known here: those that are open, those whose results were not collected, and a few
    /// that ended last.
    fn recall<'a>(&'a self, principal: &'a Principal) -> BoxFuture<'a, ()>;

    /// Makes a task known to every front end.
    fn note_task<'a>(&'a self, operation: &'a Operation, task: &'a str, life: Duration) -> BoxFuture<'a, ()>;

    /// A task that some front end made.
    fn task<'a>(&'a self, task: &'a str) -> BoxFuture<'a, Option<ClusterTask>>;
}

/// Operations that a requester may see.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    One(&'a Principal),
    /// For operators of the pool.
    All,
}

/// Operations to list.
#[derive(Debug, Clone)]
pub struct PoolFilter<'a> {
    pub whose: Whose<'a>,
    /// The only one, if it is there.
    pub id: Option<String>,
    pub only_open: bool,
    pub tool: Option<String>,
    /// A part of the tool's name or the command, in any case.
    pub text: Option<String>,
    pub since: Option<SystemTime>,
    pub limit: usize,
}

impl<'a> PoolFilter<'a> {
    /// The newest operations, whatever they are.
    pub fn new(whose: Whose<'a>, limit: usize) -> Self {
        Self {
            whose,
            id: None,
            only_open: false,
            tool: None,
            text: None,
            since: None,
            limit,
        }
    }
}

/// An operation as the log of the pool has it; one that is followed here, as it is now.
#[derive(Debug, Clone)]
pub struct PoolOperation {
    pub snapshot: Snapshot,
    pub principal: Principal,
    /// The worker that runs it, or was the last to do so.
    pub worker: Option<String>,
    pub cpu: Option<Duration>,
    pub peak_memory_bytes: Option<u64>,
}

/// A worker that was heard of within the lease.
#[derive(Debug, Clone)]
pub struct LivingWorker {
    pub name: String,
    pub host: String,
    pub version: String,
    pub labels: Vec<String>,
    pub running: usize,
    /// Operations it can run at once.
    pub slots: usize,
    /// It takes nothing new.
    pub is_draining: bool,
}

/// The workers of a pool, for its operators.
pub trait Workforce: fmt::Debug + Send + Sync {
    /// Those that live, by host and name.
    fn workers(&self) -> Vec<LivingWorker>;
}

/// A task of an operation of the cluster.
#[derive(Debug, Clone)]
pub struct ClusterTask {
    pub operation: OperationId,
    pub life: Duration,
}
