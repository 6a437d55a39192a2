//! Requests of the bridge about the operations of all clients, for operators.
//!
//! They are answered only if a bridge started this process, because it passes on none from a client.

use std::sync::Arc;

use ahma_common::contract::{LIST_OPERATIONS, OutputPlace, READ_FINDINGS, READ_OUTPUT, STOP_OPERATIONS};
use futures::future::join_all;
use rmcp::{
    ErrorData,
    model::{CustomRequest, CustomResult},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    bridge_news::{exit_code, millis},
    error,
    server::Server,
};
use crate::{
    history::document,
    operation::{Operation, PoolFilter, PoolOperation, Principal, Snapshot, Whose, rfc3339},
};

/// Operations of a pool in one answer, the newest.
const MAX_LISTED: usize = 500;

/// The answer, if it is one of these requests.
pub(super) async fn answer(
    server: &Arc<Server>,
    request: &CustomRequest,
) -> Option<Result<CustomResult, ErrorData>> {
    if !server.settings.has_bridge {
        return None;
    }
    let answered = async {
        Ok(Some(match request.method.as_str() {
            LIST_OPERATIONS => list(server, params(request)?).await,
            READ_OUTPUT => output(server, params(request)?).await?,
            READ_FINDINGS => findings(server, params(request)?).await?,
            STOP_OPERATIONS => stop(server, params(request)?).await?,
            _ => return Ok(None),
        }))
    };
    let answered: Result<Option<Value>, ErrorData> = answered.await;
    answered.map(|answer| answer.map(CustomResult::new)).transpose()
}

fn params<T: DeserializeOwned>(request: &CustomRequest) -> Result<T, ErrorData> {
    let malformed = || error::malformed(&request.method);
    request.params_as().ok().flatten().ok_or_else(malformed)
}

/// The operations to list: one, those that have not ended, or all.
#[derive(Debug, Deserialize)]
struct ListParams {
    id: Option<String>,
    #[serde(default)]
    only_open: bool,
}

#[derive(Debug, Deserialize)]
struct OutputParams {
    id: String,
    #[serde(flatten)]
    place: OutputPlace,
}

#[derive(Debug, Deserialize)]
struct FindingsParams {
    id: String,
    #[serde(default)]
    from: usize,
}

/// The operations to stop: one, those of a principal, or all.
#[derive(Debug, Deserialize)]
struct StopParams {
    id: Option<String>,
    principal: Option<String>,
    reason: String,
    end: StopEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopEnd {
    Cancelled,
    Interrupted,
}

async fn list(server: &Server, params: ListParams) -> Value {
    let ListParams { id, only_open } = params;
    let operations: Vec<Value> = match &server.settings.cluster {
        None => {
            let mut known = server.engine.operations();
            known.retain(|operation| {
                let is_meant = id.as_deref().is_none_or(|id| operation.id().as_str() == id);
                is_meant && !(only_open && operation.ended().is_some())
            });
            known.iter().map(of_engine).collect()
        }
        Some(cluster) => {
            let wanted = PoolFilter {
                id,
                only_open,
                ..PoolFilter::new(Whose::All, MAX_LISTED)
            };
            let listed = cluster.list(wanted).await;
            listed.iter().map(of_pool).collect()
        }
    };
    json!({ "operations": operations })
}

fn of_engine(operation: &Operation) -> Value {
    let mut described = described(&operation.snapshot(), operation.principal());
    described["client"] = operation.client().name().into();
    described["program"] = operation.origin().program.clone().into();
    let (cpu, memory) = operation
        .ended()
        .map_or((None, None), |outcome| (outcome.cpu, outcome.peak_memory_bytes));
    described["cpu_ms"] = cpu.map(millis).into();
    described["max_rss_bytes"] = memory.into();
    described
}

fn of_pool(operation: &PoolOperation) -> Value {
    let mut described = described(&operation.snapshot, &operation.principal);
    described["worker"] = operation.worker.clone().into();
    described["since"] = rfc3339(operation.snapshot.created_at).into();
    described["cpu_ms"] = operation.cpu.map(millis).into();
    described["max_rss_bytes"] = operation.peak_memory_bytes.into();
    described
}

fn described(snapshot: &Snapshot, principal: &Principal) -> Value {
    json!({
        "id": snapshot.id,
        "principal": principal.name(),
        "tool": snapshot.tool,
        "command": snapshot.command,
        "directory": snapshot.directory,
        "status": snapshot.state,
        "percent": snapshot.progress.percent,
        "phase": snapshot.progress.phase,
        "elapsed_ms": millis(snapshot.elapsed),
        "output_lines": snapshot.output_lines,
        "output_bytes": snapshot.output_bytes,
        "newest_line": snapshot.newest_line,
        "findings": snapshot.finding_counts,
        "exit_code": snapshot.exit.map(exit_code),
        "reason": snapshot.reason,
    })
}

async fn found(server: &Server, id: &str) -> Result<Operation, ErrorData> {
    let known = server.engine.get(id);
    let found = match (&known, &server.settings.cluster) {
        (None, Some(cluster)) => cluster.find(Whose::All, id).await,
        (Some(_), _) | (None, None) => known,
    };
    found.ok_or_else(|| ErrorData::resource_not_found(format!("no operation is called {id}"), None))
}

async fn output(server: &Server, params: OutputParams) -> Result<Value, ErrorData> {
    let operation = found(server, &params.id).await?;
    let read = document::output(&operation, params.place).await;
    read.map_err(|error| error::unreadable("the output", &error))
}

async fn findings(server: &Server, params: FindingsParams) -> Result<Value, ErrorData> {
    let operation = found(server, &params.id).await?;
    Ok(document::findings(&operation, params.from))
}

/// Everything that a principal has open, on a cluster at every front end.
async fn open_of(server: &Server, principal: &Principal) -> Vec<Operation> {
    let Some(cluster) = &server.settings.cluster else {
        return server.engine.operations();
    };
    let open = PoolFilter {
        only_open: true,
        ..PoolFilter::new(Whose::One(principal), MAX_LISTED)
    };
    let listed = cluster.list(open).await;
    let found = listed
        .iter()
        .map(|operation| cluster.find(Whose::One(principal), operation.snapshot.id.as_str()));
    join_all(found).await.into_iter().flatten().collect()
}

/// Stops operations, and answers when none of their processes is left.
async fn stop(server: &Server, params: StopParams) -> Result<Value, ErrorData> {
    let operations = match (&params.id, &params.principal) {
        (Some(id), _) => vec![found(server, id).await?],
        (None, Some(principal)) => open_of(server, &Principal::named(principal)).await,
        (None, None) => server.engine.operations(),
    };
    let is_meant = |operation: &&Operation| {
        let principal = params.principal.as_deref();
        // Operations that run elsewhere go on after the end of this server.
        let goes_on = params.end == StopEnd::Interrupted && operation.runs_elsewhere();
        operation.ended().is_none()
            && !goes_on
            && principal.is_none_or(|principal| operation.principal().name() == Some(principal))
    };
    let meant: Vec<&Operation> = operations.iter().filter(is_meant).collect();
    join_all(meant.iter().map(|operation| async {
        match params.end {
            StopEnd::Cancelled => operation.cancel(Some(params.reason.clone())).await,
            StopEnd::Interrupted => operation.interrupt(params.reason.clone()).await,
        }
    }))
    .await;
    let stopped: Vec<_> = meant.iter().map(|operation| operation.id()).collect();
    Ok(json!({ "stopped": stopped }))
}
