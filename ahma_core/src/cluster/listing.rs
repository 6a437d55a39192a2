//! Lists operations of the pool, whichever front end took their calls: what the log says, and of those that are open what
//! they print now.

use std::time::{Duration, SystemTime};

use ahma_cluster::{EndCause, Entry, OperationLog, Stage, owner_of};
use futures::{StreamExt as _, future::join_all, stream};

use super::{front::EngineOnCluster, wire::EndReport};
use crate::operation::{OperationId, OperationState, PoolFilter, PoolOperation, Principal, Snapshot, Whose};

/// Open operations that are followed for a list. Of others only the log is known.
const MAX_FOLLOWED: usize = 50;

/// Time for their output; what is missing then comes later.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(1);

/// Logs that are read side by side.
const READ_AT_ONCE: usize = 16;

impl EngineOnCluster {
    pub(super) async fn listed(&self, wanted: PoolFilter<'_>) -> Vec<PoolOperation> {
        let tail = self.cluster.front.tail();
        if let Err(error) = tail.synced().await {
            tracing::warn!(%error, "operations of other front ends may be missing");
        }
        let text = wanted.text.as_ref().map(|text| text.to_lowercase());
        let owner = match wanted.whose {
            Whose::One(principal) => Some(owner_of(principal.name())),
            Whose::All => None,
        };
        let entries = tail.newest(wanted.limit, |entry| {
            owner.as_ref().is_none_or(|owner| entry.owner == *owner)
                && wanted.id.as_ref().is_none_or(|id| entry.operation == *id)
                && !(wanted.only_open && entry.folded.has_ended())
                && wanted.tool.as_ref().is_none_or(|tool| entry.tool == *tool)
                && wanted.since.is_none_or(|since| entry.created_at >= since)
                && text.as_ref().is_none_or(|text| {
                    entry.tool.to_lowercase().contains(text) || entry.command.to_lowercase().contains(text)
                })
        });
        let open = entries.iter().filter(|entry| !entry.folded.has_ended());
        let follow = open.take(MAX_FOLLOWED).cloned();
        let follow = join_all(follow.map(|entry| async move { self.followed(&entry).await }));
        let _ = tokio::time::timeout(FOLLOW_TIMEOUT, follow).await;
        let described = stream::iter(entries).map(|entry| async move { self.described(&entry).await });
        described
            .buffered(READ_AT_ONCE)
            .filter_map(std::future::ready)
            .collect()
            .await
    }

    async fn described(&self, entry: &Entry) -> Option<PoolOperation> {
        if let Some(operation) = self.engine.get(&entry.operation) {
            let outcome = operation.ended();
            return Some(PoolOperation {
                snapshot: operation.snapshot(),
                principal: operation.principal().clone(),
                worker: entry.worker.clone(),
                cpu: outcome.as_ref().and_then(|outcome| outcome.cpu),
                peak_memory_bytes: outcome.as_ref().and_then(|outcome| outcome.peak_memory_bytes),
            });
        }
        match self.cluster.front.log_of(entry).await {
            Ok(log) => {
                let place = self.cluster.front.tail().place_in_queue(&entry.operation);
                Some(as_logged(entry, log?, place))
            }
            Err(error) => {
                tracing::warn!(%error, operation = entry.operation, "its log cannot be read");
                None
            }
        }
    }
}

/// An operation that nothing else is known of.
fn as_logged(entry: &Entry, log: OperationLog, queue_position: Option<usize>) -> PoolOperation {
    let (state, mut reason) = state_and_reason(&log.folded.stage);
    let end = log.end;
    let output_bytes = end.as_ref().map_or(0, |end| end.bytes);
    let report: EndReport = end
        .and_then(|end| serde_json::from_value(end.outcome).ok())
        .unwrap_or_default();
    reason = reason.or(report.refusal);
    let outcome = report.outcome;
    let started_at: Option<SystemTime> = log.claimed_at.map(Into::into);
    let until: SystemTime = log.ended_at.map_or_else(SystemTime::now, Into::into);
    let since_start = started_at.and_then(|started| until.duration_since(started).ok());
    let snapshot = Snapshot {
        id: OperationId::recalled(&entry.operation),
        tool: log.request.tool,
        command: log.request.command,
        directory: log.request.directory.into(),
        state,
        keeps_running: log.request.keeps_running,
        queue_position,
        created_at: log.queued_at.into(),
        started_at,
        elapsed: outcome
            .as_ref()
            .map(|outcome| outcome.duration)
            .or(since_start)
            .unwrap_or_default(),
        progress: outcome
            .as_ref()
            .map(|outcome| outcome.reached.clone())
            .unwrap_or_default(),
        step: None,
        newest_line: None,
        output_lines: outcome.as_ref().map_or(0, |outcome| outcome.output.total_lines),
        output_bytes,
        finding_counts: outcome
            .as_ref()
            .map(|outcome| outcome.finding_counts)
            .unwrap_or_default(),
        exit: outcome.as_ref().and_then(|outcome| outcome.exit),
        reason: reason.or_else(|| outcome.as_ref().and_then(|outcome| outcome.reason.clone())),
    };
    PoolOperation {
        snapshot,
        principal: log
            .request
            .principal
            .as_deref()
            .map(Principal::named)
            .unwrap_or_default(),
        worker: log.worker,
        cpu: outcome.as_ref().and_then(|outcome| outcome.cpu),
        peak_memory_bytes: outcome.as_ref().and_then(|outcome| outcome.peak_memory_bytes),
    }
}

fn state_and_reason(stage: &Stage) -> (OperationState, Option<String>) {
    let named = |state: &str| OperationState::named(state).unwrap_or(OperationState::Failed);
    match stage {
        Stage::Unheard | Stage::Queued { .. } => (OperationState::Queued, None),
        Stage::Running { .. } => (OperationState::Running, None),
        Stage::Ended { end, .. } => match end {
            EndCause::Reported { state } => (named(state), None),
            EndCause::Dropped { state, why } => (named(state), Some(why.clone())),
            EndCause::WorkerLost { worker } => (
                OperationState::Interrupted,
                Some(format!("its worker {worker} is gone")),
            ),
        },
    }
}
