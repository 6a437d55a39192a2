//! Operations as tasks of the extension `io.modelcontextprotocol/tasks`.
//!
//! Only for clients of the modern era that declare it: then an asynchronous call answers with a task instead of an
//! operation id. A task is a view of its operation, whose id stands in its messages, so `output` and `cancel` work too.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, CreateTaskResult, DetailedTask, MetaObject},
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use tokio::time::Instant;

use super::{
    convert, error,
    handler::is_modern,
    progress,
    report::OperationReport,
    server::{ResultForm, Server},
    watcher::{Pace, Sink, Watcher},
};
use crate::operation::{ClientId, EndState, Operation};

/// Life of a task beyond the timeout of its command, which may wait in the queue before it runs. rmcp keeps a task
/// that has ended for one more such life, so its result can be fetched for longer than this.
const RETENTION: Duration = Duration::from_secs(1800);

/// Number of tasks, with those that have ended: as many as an engine remembers operations. Each holds a result,
/// and a client can make them faster than they are forgotten.
const MAX_TASKS: usize = 500;

/// Keeps an absurd timeout from overflowing clocks.
const MAX_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Time between two requests of a client for the state of a task.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Under this name the `_meta` of the answer tells which operation the task is.
const OPERATION_META: &str = "ahma/operationId";

/// All tasks of a server.
#[derive(Default)]
pub(super) struct TaskStore {
    manager: TaskManager,
    known: Mutex<KnownTasks>,
}

/// The client of each task, and the limit on their number.
#[derive(Debug, Default)]
struct KnownTasks {
    by_id: HashMap<String, KnownTask>,
}

#[derive(Debug)]
struct KnownTask {
    client: ClientId,
    life: Duration,
    /// Time by which the manager has forgotten it.
    gone_by: Instant,
}

impl KnownTasks {
    fn has_room(&mut self, now: Instant) -> bool {
        self.by_id.retain(|_, task| task.gone_by > now);
        self.by_id.len() < MAX_TASKS
    }

    fn add(&mut self, id: String, client: ClientId, life: Duration, now: Instant) {
        let gone_by = now + life + life;
        self.by_id.insert(
            id,
            KnownTask {
                client,
                life,
                gone_by,
            },
        );
    }

    fn has_ended(&mut self, id: &str, now: Instant) {
        if let Some(task) = self.by_id.get_mut(id) {
            task.gone_by = now + task.life;
        }
    }

    fn is_of(&self, client: &ClientId, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|task| task.client == *client)
    }
}

impl fmt::Debug for TaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStore").finish_non_exhaustive()
    }
}

impl TaskStore {
    pub(super) fn get(&self, client: &ClientId, id: &str) -> Result<DetailedTask, ErrorData> {
        self.check(client, id)?;
        self.manager.get_task(id)
    }

    /// No task asks its client for input, so no response is waited for.
    pub(super) fn update(&self, client: &ClientId, id: &str) -> Result<(), ErrorData> {
        self.check(client, id)?;
        self.manager.update_task(id, [])
    }

    /// Asks for the end. The task says `cancelled` when no process is left.
    pub(super) fn cancel(&self, client: &ClientId, id: &str) -> Result<(), ErrorData> {
        self.check(client, id)?;
        self.manager.cancel_task(id)
    }

    /// A task of another client is as unknown as one that does not exist.
    fn check(&self, client: &ClientId, id: &str) -> Result<(), ErrorData> {
        if self.known.lock().is_of(client, id) {
            Ok(())
        } else {
            Err(error::unknown_task(id))
        }
    }

    pub(super) fn shutdown(&self) {
        self.manager.shutdown();
    }
}

/// True if the client of this request accepts a task as the answer.
pub(super) fn are_offered(ctx: &RequestContext<RoleServer>) -> bool {
    is_modern(ctx)
        && ctx
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Makes a task of an operation that runs for at most `timeout`. None if there are too many: then the operation has to do.
pub(super) fn create(
    server: &Arc<Server>,
    operation: &Operation,
    timeout: Duration,
    form: ResultForm,
) -> Option<CreateTaskResult> {
    // Held until the task is known, so that no other takes its place and its end does not come first.
    let mut known = server.task_store.known.lock();
    if !known.has_room(Instant::now()) {
        return None;
    }
    let operation = operation.clone();
    let client = operation.client().clone();
    let life = timeout.saturating_add(RETENTION).min(MAX_LIFE);
    let options = TaskOptions::new()
        .with_ttl_ms(life.as_millis() as u64)
        .with_poll_interval_ms(POLL_INTERVAL.as_millis() as u64)
        .with_status_message(OperationReport::started(&operation).headline());
    let mut meta = MetaObject::new();
    meta.0
        .insert(OPERATION_META.to_owned(), operation.id().as_str().into());
    let server_of_task = server.clone();
    let task = server.task_store.manager.spawn(options, move |context| {
        Box::pin(async move {
            let id = context.task_id().to_owned();
            let followed = follow(&server_of_task, operation, context)
                .await
                .map(|result| convert::in_form(result, form));
            server_of_task
                .task_store
                .known
                .lock()
                .has_ended(&id, Instant::now());
            followed
        })
    });
    known.add(task.task_id.clone(), client, life, Instant::now());
    Some(CreateTaskResult::new(task).with_meta(meta))
}

/// Keeps the message of a task up to date.
pub(super) struct TaskSink {
    operation: Operation,
    context: TaskContext,
}

impl fmt::Debug for TaskSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSink").finish_non_exhaustive()
    }
}

impl TaskSink {
    /// The time that a task has run changes even if nothing else does.
    pub(super) const PACE: Pace = Pace {
        interval: Duration::from_millis(500),
        heartbeat: Some(POLL_INTERVAL),
        is_behind: false,
    };

    pub(super) fn send(&mut self) {
        let row = OperationReport::row(&self.operation.snapshot());
        self.context.set_status_message(progress::message(&[row]));
    }
}

async fn follow(
    server: &Server,
    operation: Operation,
    context: TaskContext,
) -> Result<CallToolResult, TaskExit> {
    let sink = TaskSink {
        operation: operation.clone(),
        context: context.clone(),
    };
    let ended = async {
        tokio::select! {
            biased;
            outcome = operation.outcome() => Some(outcome),
            () = context.cancelled() => None,
        }
    };
    let mut watcher = Watcher::new(std::slice::from_ref(&operation)).with(Some(Sink::Task(sink)));
    let outcome = match watcher.during(ended).await {
        Some(outcome) => outcome,
        None => {
            context.set_status_message(format!(
                "{} ({}) is being stopped",
                operation.id(),
                operation.tool()
            ));
            let outcome = operation
                .cancel(Some("the client cancelled the task".to_owned()))
                .await;
            if outcome.state == EndState::Cancelled {
                context.set_status_message(OperationReport::ended(&outcome).headline());
                return Err(TaskExit::Cancelled);
            }
            outcome
        }
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
        let client = ClientId::named("mine");
        for number in 0..MAX_TASKS {
            assert!(known.has_room(start));
            known.add(
                number.to_string(),
                client.clone(),
                Duration::from_secs(100),
                start,
            );
        }
        assert!(!known.has_room(start));
        assert!(known.is_of(&client, "7") && !known.is_of(&ClientId::named("other"), "7"));

        known.has_ended("7", after(50));
        assert!(!known.has_room(after(149)), "its result can still be fetched");
        assert!(known.has_room(after(150)));
        assert!(!known.is_of(&client, "7") && known.is_of(&client, "8"));
        assert!(known.has_room(after(200)));
        assert!(!known.is_of(&client, "8"));
    }
}
