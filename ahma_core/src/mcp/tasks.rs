//! Operations as tasks of the extension `io.modelcontextprotocol/tasks`.
//!
//! Only for clients of the newer era that declare it: then an asynchronous call answers with a task instead of an
//! operation id. A task is a view of its operation, whose id stands in its messages, so `output` and `cancel` work too.

use std::{fmt, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, CreateTaskResult, DetailedTask, MetaObject},
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use tokio::time::Instant;

use super::{Inner, changes::Changes, is_modern, progress, report::OperationReport};
use crate::operation::{EndState, Operation};

/// How long a result can be fetched after the latest moment at which the command is stopped.
const RETENTION: Duration = Duration::from_secs(3600);

/// How often clients should ask, and how often the message changes.
const POLL: Duration = Duration::from_secs(1);

/// Under this name the `_meta` of the answer tells which operation the task is.
const OPERATION_META: &str = "ahma/operationId";

/// All tasks of a server.
#[derive(Clone, Default)]
pub(super) struct Store {
    manager: TaskManager,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    pub(super) fn get(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        self.manager.get_task(id)
    }

    /// Nothing here asks a client for input, so no response has anyone waiting for it.
    pub(super) fn update(&self, id: &str) -> Result<(), ErrorData> {
        self.manager.update_task(id, [])
    }

    /// Asks for the end. The task says `cancelled` when no process is left.
    pub(super) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.manager.cancel_task(id)
    }

    pub(super) fn shutdown(&self) {
        self.manager.shutdown();
    }
}

/// Whether the client of this request can take a task for an answer.
pub(super) fn are_offered(ctx: &RequestContext<RoleServer>) -> bool {
    is_modern(ctx)
        && ctx
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Makes a task of an operation that runs for at most `timeout`.
pub(super) fn create(server: &Arc<Inner>, operation: Operation, timeout: Duration) -> CreateTaskResult {
    let lifetime = u64::try_from((timeout + RETENTION).as_millis()).unwrap_or(u64::MAX);
    let options = TaskOptions::new()
        .with_ttl_ms(lifetime)
        .with_poll_interval_ms(POLL.as_millis() as u64)
        .with_status_message(OperationReport::started(&operation).headline());
    let mut meta = MetaObject::new();
    meta.0
        .insert(OPERATION_META.to_owned(), operation.id().as_str().into());
    let server_of_task = server.clone();
    let task = server.task_store.manager.spawn(options, move |context| {
        Box::pin(async move { follow(&server_of_task, operation, context).await })
    });
    CreateTaskResult::new(task).with_meta(meta)
}

async fn follow(
    server: &Inner,
    operation: Operation,
    context: TaskContext,
) -> Result<CallToolResult, TaskExit> {
    let mut changes = Changes::of(std::slice::from_ref(&operation));
    let mut told = Instant::now();
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = operation.outcome() => break outcome,
            () = context.cancelled() => {
                context.set_status_message(format!("{} ({}) is being stopped", operation.id(), operation.tool()));
                let outcome = operation.cancel(Some("the client cancelled the task".to_owned())).await;
                if outcome.state == EndState::Cancelled {
                    context.set_status_message(OperationReport::ended(&outcome).headline());
                    return Err(TaskExit::Cancelled);
                }
                break outcome;
            }
            () = changes.next(|| told + POLL / 2) => {}
            // Nothing is new but the time.
            () = tokio::time::sleep_until(told + POLL) => {}
        }
        let row = OperationReport::row(&operation.snapshot());
        context.set_status_message(progress::message(&[row]));
        told = Instant::now();
    };
    // The store keeps the result for the client; `await` need not offer it, too.
    operation.mark_seen();
    let report = OperationReport::ended(&outcome);
    context.set_status_message(report.headline());
    Ok(server.results.operation(&report))
}
