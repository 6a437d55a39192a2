//! Operations as tasks of the extension `io.modelcontextprotocol/tasks`.
//!
//! Only for clients of the modern era that declare it: then an asynchronous call answers with a task instead of an
//! operation id. A task is a view of its operation, whose id is in its messages, so `output` and `cancel` work too. If a
//! history is kept, a task lives as long as promised, even if its server ends before.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, CreateTaskResult, DetailedTask, MetaObject, Task, TaskPayload},
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    bridge_news::millis,
    client, convert, error,
    handler::is_modern,
    progress,
    report::OperationReport,
    server::{ResultForm, Server},
    watcher::{Pace, Sink, Watcher},
};
use crate::{
    history::TaskRow,
    operation::{EndState, Operation, Principal, rfc3339},
};

/// Life of a task beyond the timeout of its command, which may wait in the queue before it runs. rmcp keeps a task
/// that has ended for one more such life, so its result can be fetched for longer than this.
const RETENTION: Duration = Duration::from_secs(1800);

/// Number of tasks, with those that have ended: as many as an engine remembers operations. Each holds a result,
/// and a client can make them faster than they are forgotten.
const MAX_TASKS: usize = 500;

/// Keeps an absurd timeout from overflowing clocks.
const MAX_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reason of an operation whose task was cancelled.
const TASK_CANCELLED: &str = "the client cancelled the task";

/// Time between two requests of a client for the state of a task.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Key in the `_meta` of the answer for the operation of the task.
const OPERATION_META: &str = "ahma/operationId";

/// All tasks of a server.
#[derive(Default)]
pub(super) struct TaskStore {
    manager: TaskManager,
    known: Mutex<KnownTasks>,
}

/// The principal of each task, and the limit on their number.
#[derive(Debug, Default)]
struct KnownTasks {
    by_id: HashMap<String, KnownTask>,
}

#[derive(Debug)]
struct KnownTask {
    principal: Principal,
    life: Duration,
    /// Time by which the manager has forgotten it.
    gone_by: Instant,
}

impl KnownTasks {
    fn has_room(&mut self, now: Instant) -> bool {
        self.by_id.retain(|_, task| task.gone_by > now);
        self.by_id.len() < MAX_TASKS
    }

    fn add(&mut self, id: String, principal: Principal, life: Duration, now: Instant) {
        let gone_by = now + life + life;
        self.by_id.insert(
            id,
            KnownTask {
                principal,
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

    fn is_of(&self, principal: &Principal, id: &str) -> bool {
        let task = self.by_id.get(id);
        task.is_some_and(|task| task.principal == *principal)
    }
}

impl fmt::Debug for TaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStore").finish_non_exhaustive()
    }
}

impl TaskStore {
    pub(super) fn shutdown(&self) {
        self.manager.shutdown();
    }
}

/// State of a task: one of this server, or one that outlived its server.
pub(super) async fn get(
    server: &Server,
    ctx: &RequestContext<RoleServer>,
    id: &str,
) -> Result<DetailedTask, ErrorData> {
    let Some((row, operation)) = outlived(server, ctx, id).await? else {
        return server.task_store.manager.get_task(id);
    };
    let form = convert::wanted_form(server.settings.results, &ctx.meta);
    Ok(recalled(server, &row, &operation, form))
}

/// Does nothing: no task asks its client for input.
pub(super) async fn update(
    server: &Server,
    ctx: &RequestContext<RoleServer>,
    id: &str,
) -> Result<(), ErrorData> {
    match outlived(server, ctx, id).await? {
        None => server.task_store.manager.update_task(id, []),
        Some(_) => Ok(()),
    }
}

/// Requests the end of the operation. The task is `cancelled` when no process is left.
pub(super) async fn cancel(
    server: &Server,
    ctx: &RequestContext<RoleServer>,
    id: &str,
) -> Result<(), ErrorData> {
    let Some((_, operation)) = outlived(server, ctx, id).await? else {
        return server.task_store.manager.cancel_task(id);
    };
    operation.request_cancel(Some(TASK_CANCELLED.to_owned()));
    Ok(())
}

/// A task that is not in memory any more, with its operation; none if it is in memory.
async fn outlived(
    server: &Server,
    ctx: &RequestContext<RoleServer>,
    id: &str,
) -> Result<Option<(TaskRow, Operation)>, ErrorData> {
    let principal = &client::principal(server, &ctx.meta);
    // A task of another principal is as unknown as one that does not exist.
    if server.task_store.known.lock().is_of(principal, id) {
        return Ok(None);
    }
    let unknown = || error::unknown_task(id);
    if let Some(cluster) = &server.settings.cluster {
        let task = cluster.task(id).await.ok_or_else(unknown)?;
        let operation = server.operation_of(principal, task.operation.as_str()).await;
        let operation = operation.ok_or_else(unknown)?;
        let row = TaskRow {
            id: id.to_owned(),
            operation: task.operation,
            created_at: operation.snapshot().created_at,
            life: task.life,
        };
        return Ok(Some((row, operation)));
    }
    let history = server.settings.history.as_ref().ok_or_else(unknown)?;
    let found = history.task(principal, id).await;
    let row = found.ok().flatten().ok_or_else(unknown)?;
    let operation = server.operation_of(principal, row.operation.as_str()).await;
    Ok(Some((row, operation.ok_or_else(unknown)?)))
}

fn recalled(server: &Server, row: &TaskRow, operation: &Operation, form: ResultForm) -> DetailedTask {
    let report = OperationReport::full(operation);
    let payload = match operation.ended() {
        None => TaskPayload::Working,
        Some(outcome) if outcome.state == EndState::Cancelled => TaskPayload::Cancelled,
        Some(_) => {
            operation.mark_seen();
            let result = convert::in_form(server.results.operation(&report), form);
            match serde_json::to_value(result) {
                Ok(Value::Object(result)) => TaskPayload::Completed { result },
                Ok(_) | Err(_) => TaskPayload::Working,
            }
        }
    };
    let now = rfc3339(SystemTime::now());
    let task = Task::new(&row.id, payload.status(), rfc3339(row.created_at), now)
        .with_ttl_ms(millis(row.life))
        .with_poll_interval_ms(millis(POLL_INTERVAL))
        .with_status_message(report.headline());
    DetailedTask::new(task, payload)
}

/// True if the client of this request accepts a task as the answer.
pub(super) fn are_offered(ctx: &RequestContext<RoleServer>) -> bool {
    is_modern(ctx)
        && ctx
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Makes a task of an operation that runs for at most `timeout`. None if there are too many: then the operation has to do.
pub(super) async fn create(
    server: &Arc<Server>,
    operation: &Operation,
    timeout: Duration,
    form: ResultForm,
) -> Option<CreateTaskResult> {
    let (task, life) = spawn(server, operation, timeout, form)?;
    if let Some(cluster) = &server.settings.cluster {
        cluster.note_task(operation, &task.task.task_id, life).await;
    }
    Some(task)
}

fn spawn(
    server: &Arc<Server>,
    operation: &Operation,
    timeout: Duration,
    form: ResultForm,
) -> Option<(CreateTaskResult, Duration)> {
    // Held until the task is known, so that no other takes its place and its end does not come first.
    let mut known = server.task_store.known.lock();
    if !known.has_room(Instant::now()) {
        return None;
    }
    let operation = operation.clone();
    let principal = operation.principal().clone();
    let operation_id = operation.id().clone();
    let life = timeout.saturating_add(RETENTION).min(MAX_LIFE);
    let options = TaskOptions::new()
        .with_ttl_ms(millis(life))
        .with_poll_interval_ms(millis(POLL_INTERVAL))
        .with_status_message(OperationReport::started(&operation).headline());
    let mut meta = MetaObject::new();
    meta.0
        .insert(OPERATION_META.to_owned(), operation.id().as_str().into());
    let server_of_task = server.clone();
    let task = server.task_store.manager.spawn(options, move |context| {
        Box::pin(async move {
            let id = context.task_id().to_owned();
            let followed = follow(&server_of_task, operation, context).await;
            let mut known = server_of_task.task_store.known.lock();
            known.has_ended(&id, Instant::now());
            followed.map(|result| convert::in_form(result, form))
        })
    });
    known.add(task.task_id.clone(), principal, life, Instant::now());
    if let Some(history) = &server.settings.history {
        history.note_task(TaskRow {
            id: task.task_id.clone(),
            operation: operation_id,
            created_at: SystemTime::now(),
            life,
        });
    }
    Some((CreateTaskResult::new(task).with_meta(meta), life))
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
            let (id, tool) = (operation.id(), operation.tool());
            context.set_status_message(format!("{id} ({tool}) is being stopped"));
            let outcome = operation.cancel(Some(TASK_CANCELLED.to_owned())).await;
            if outcome.state == EndState::Cancelled {
                context.set_status_message(OperationReport::ended(&outcome).headline());
                return Err(TaskExit::Cancelled);
            }
            outcome
        }
    };
    // The store keeps the result for the client, so `await` does not offer it.
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
        let principal = Principal::named("mine");
        for number in 0..MAX_TASKS {
            assert!(known.has_room(start));
            known.add(
                number.to_string(),
                principal.clone(),
                Duration::from_secs(100),
                start,
            );
        }
        assert!(!known.has_room(start));
        assert!(known.is_of(&principal, "7") && !known.is_of(&Principal::named("other"), "7"));

        known.has_ended("7", after(50));
        assert!(!known.has_room(after(149)), "its result can still be fetched");
        assert!(known.has_room(after(150)));
        assert!(!known.is_of(&principal, "7") && known.is_of(&principal, "8"));
        assert!(known.has_room(after(200)));
        assert!(!known.is_of(&principal, "8"));
    }
}
