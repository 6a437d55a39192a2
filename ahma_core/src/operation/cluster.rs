//! Other hosts that run calls, as those who take calls know them.

use std::{fmt, time::Duration};

use futures::future::BoxFuture;

use super::{CallOrigin, Operation, OperationId, Principal};
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

    /// An operation of a principal, whichever front end took its call.
    fn find<'a>(&'a self, principal: &'a Principal, id: &'a str) -> BoxFuture<'a, Option<Operation>>;

    /// Makes the operations of a principal known here: those that are open, those whose results nobody collected, and a few
    /// that ended last.
    fn recall<'a>(&'a self, principal: &'a Principal) -> BoxFuture<'a, ()>;

    /// Makes a task known to every front end.
    fn note_task<'a>(&'a self, operation: &'a Operation, task: &'a str, life: Duration) -> BoxFuture<'a, ()>;

    /// A task that some front end made.
    fn task<'a>(&'a self, task: &'a str) -> BoxFuture<'a, Option<ClusterTask>>;
}

/// A task of an operation of the cluster.
#[derive(Debug, Clone)]
pub struct ClusterTask {
    pub operation: OperationId,
    pub life: Duration,
}
