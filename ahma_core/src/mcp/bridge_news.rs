//! Notifies the bridge in front of this server when an operation is queued, starts and ends. The bridge counts it, records it
//! in its audit trail, and keeps the session meanwhile.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ahma_common::contract::NOTIFY_OPERATION;
use rmcp::model::{CustomNotification, ServerNotification};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::{client, server::Server};
use crate::{
    jail::ExitStatus,
    operation::{Operation, OperationId, OperationState},
};

/// The event of an operation that the bridge was last notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum OperationEvent {
    Queued,
    Started,
    Ended,
}

impl OperationEvent {
    fn of(operation: &Operation) -> Self {
        let snapshot = operation.snapshot();
        match snapshot.state {
            OperationState::Queued if snapshot.queue_position.is_some() => Self::Queued,
            // It has its place and is about to begin.
            OperationState::Queued | OperationState::Running => Self::Started,
            _ => Self::Ended,
        }
    }
}

pub(super) async fn follow(server: Arc<Server>) {
    let mut changes = server.engine.changes();
    let mut told = HashMap::new();
    loop {
        match changes.recv().await {
            Ok(change) => match server.engine.get(change.id.as_str()) {
                Some(operation) => tell(&server, &operation, &mut told).await,
                None => drop(told.remove(&change.id)),
            },
            Err(RecvError::Lagged(_)) => {
                let operations = server.engine.operations();
                told.retain(|id, _| operations.iter().any(|operation| operation.id() == id));
                for operation in &operations {
                    tell(&server, operation, &mut told).await;
                }
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn tell(server: &Server, operation: &Operation, told: &mut HashMap<OperationId, OperationEvent>) {
    // The front end that took its call does this.
    if operation.client().is_elsewhere() {
        return;
    }
    let now = OperationEvent::of(operation);
    if told.get(operation.id()) == Some(&now) {
        return;
    }
    let Some(peer) = server.subscriptions.peer() else {
        return;
    };
    told.insert(operation.id().clone(), now);
    let mut params = json!({ "event": now, "operation": report(operation) });
    if let Some(meta) = client::meant_for(operation.client())
        && let Ok(meta) = serde_json::to_value(meta)
    {
        params["_meta"] = meta;
    }
    let news = CustomNotification::new(NOTIFY_OPERATION, Some(params));
    if let Err(error) = peer
        .send_notification(ServerNotification::CustomNotification(news))
        .await
    {
        tracing::debug!(%error, "the bridge could not be told of an operation");
    }
}

fn report(operation: &Operation) -> Value {
    let mut report = json!({
        "id": operation.id(),
        "tool": operation.tool(),
        "status": operation.snapshot().state,
    });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            report[name] = value;
        }
    };
    add("principal", operation.principal().name().map(Value::from));
    let Some(outcome) = operation.ended() else {
        return report;
    };
    add("exit_code", outcome.exit.map(exit_code).map(Value::from));
    add("duration_ms", Some(millis(outcome.duration).into()));
    add("cpu_ms", outcome.cpu.map(millis).map(Value::from));
    add("max_rss_bytes", outcome.peak_memory_bytes.map(Value::from));
    add("output_bytes", Some(operation.output().size().1.into()));
    add("findings", serde_json::to_value(outcome.finding_counts).ok());
    add("reason", outcome.reason.clone().map(Value::from));
    report
}

/// Exit code as in a shell: a signal is 128 and its number.
pub(super) fn exit_code(exit: ExitStatus) -> i32 {
    match exit {
        ExitStatus::Code(code) => code,
        ExitStatus::Signal(signal) => 128 + signal,
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
