//! Operations as tasks of the extension `io.modelcontextprotocol/tasks`.
//!
//! Only for clients of the newer era that declare it: then an asynchronous call answers with a task instead of an
//! operation id. A task is a view of its operation, whose id stands in its messages, so `output` and `cancel` work too.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, CreateTaskResult, DetailedTask, MetaObject},
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use tokio::time::Instant;

use super::{Inner, changes::Changes, error, is_modern, progress, report::OperationReport};
use crate::operation::{EndState, Operation, Owner};

/// How long a task lives beyond the timeout of its command, which may wait in the queue before it runs. rmcp keeps a task
/// that has ended for one more such life, so its result can be fetched for longer than this.
const RETENTION: Duration = Duration::from_secs(1800);

/// How many tasks there may be, with those that have ended: as many as an engine remembers operations. Each holds a result,
/// and a client can make them faster than they are forgotten.
const MOST_TASKS: usize = 500;

/// Keeps a timeout that nobody means from overflowing clocks.
const LONGEST_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// How often clients should ask, and how often the message changes.
const POLL: Duration = Duration::from_secs(1);

/// Under this name the `_meta` of the answer tells which operation the task is.
const OPERATION_META: &str = "ahma/operationId";

/// All tasks of a server.
#[derive(Default)]
pub(super) struct Store {
    manager: TaskManager,
    known: Mutex<KnownTasks>,
}

/// Whose the tasks are, and how many there can be.
#[derive(Debug, Default)]
struct KnownTasks {
    by_id: HashMap<String, KnownTask>,
}

#[derive(Debug)]
struct KnownTask {
    owner: Owner,
    life: Duration,
    /// When the manager has forgotten it at the latest.
    gone_by: Instant,
}

impl KnownTasks {
    fn has_room(&mut self, now: Instant) -> bool {
        self.by_id.retain(|_, task| task.gone_by > now);
        self.by_id.len() < MOST_TASKS
    }

    fn add(&mut self, id: String, owner: Owner, life: Duration, now: Instant) {
        let gone_by = now + life + life;
        self.by_id.insert(id, KnownTask { owner, life, gone_by });
    }

    fn has_ended(&mut self, id: &str, now: Instant) {
        if let Some(task) = self.by_id.get_mut(id) {
            task.gone_by = now + task.life;
        }
    }

    fn is_of(&self, owner: &Owner, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|task| task.owner == *owner)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    pub(super) fn get(&self, owner: &Owner, id: &str) -> Result<DetailedTask, ErrorData> {
        self.check(owner, id)?;
        self.manager.get_task(id)
    }

    /// Nothing here asks a client for input, so no response has anyone waiting for it.
    pub(super) fn update(&self, owner: &Owner, id: &str) -> Result<(), ErrorData> {
        self.check(owner, id)?;
        self.manager.update_task(id, [])
    }

    /// Asks for the end. The task says `cancelled` when no process is left.
    pub(super) fn cancel(&self, owner: &Owner, id: &str) -> Result<(), ErrorData> {
        self.check(owner, id)?;
        self.manager.cancel_task(id)
    }

    /// A task of another client is as unknown as one that does not exist.
    fn check(&self, owner: &Owner, id: &str) -> Result<(), ErrorData> {
        if self.known().is_of(owner, id) {
            Ok(())
        } else {
            Err(error::unknown_task(id))
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownTasks> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Makes a task of an operation that runs for at most `timeout`. None if there are too many: then the operation has to do.
pub(super) fn create(
    server: &Arc<Inner>,
    operation: &Operation,
    timeout: Duration,
) -> Option<CreateTaskResult> {
    // Held until the task is known, so that no other takes its place and its end does not come first.
    let mut known = server.task_store.known();
    if !known.has_room(Instant::now()) {
        return None;
    }
    let operation = operation.clone();
    let owner = operation.owner().clone();
    let life = timeout.saturating_add(RETENTION).min(LONGEST_LIFE);
    let options = TaskOptions::new()
        .with_ttl_ms(life.as_millis() as u64)
        .with_poll_interval_ms(POLL.as_millis() as u64)
        .with_status_message(OperationReport::started(&operation).headline());
    let mut meta = MetaObject::new();
    meta.0
        .insert(OPERATION_META.to_owned(), operation.id().as_str().into());
    let server_of_task = server.clone();
    let task = server.task_store.manager.spawn(options, move |context| {
        Box::pin(async move {
            let id = context.task_id().to_owned();
            let followed = follow(&server_of_task, operation, context).await;
            server_of_task.task_store.known().has_ended(&id, Instant::now());
            followed
        })
    });
    known.add(task.task_id.clone(), owner, life, Instant::now());
    Some(CreateTaskResult::new(task).with_meta(meta))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_again_when_tasks_are_forgotten() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut known = KnownTasks::default();
        let owner = Owner::named("mine");
        for number in 0..MOST_TASKS {
            assert!(known.has_room(start));
            known.add(number.to_string(), owner.clone(), Duration::from_secs(100), start);
        }
        assert!(!known.has_room(start));
        assert!(known.is_of(&owner, "7") && !known.is_of(&Owner::named("other"), "7"));

        known.has_ended("7", after(50));
        assert!(!known.has_room(after(149)), "its result can still be fetched");
        assert!(known.has_room(after(150)));
        assert!(!known.is_of(&owner, "7") && known.is_of(&owner, "8"));
        assert!(known.has_room(after(200)));
        assert!(!known.is_of(&owner, "8"));
    }
}
