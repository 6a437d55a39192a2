//! Requests of the bridge about the operations of all clients, for those who look after the server.
//!
//! They are answered only where a bridge started this process: it passes none on from a client.

use std::sync::Arc;

use ahma_common::contract::{LIST_OPERATIONS, READ_FINDINGS, READ_OUTPUT, STOP_OPERATIONS};
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
use crate::operation::{Operation, OutputQuery, PageStart};

/// Lines of one answer; a page has a limit in bytes, too.
const MAX_LINES: u64 = 10_000;

/// The answer, if it is one of these requests.
pub(super) async fn answer(
    server: &Arc<Server>,
    request: &CustomRequest,
) -> Option<Result<CustomResult, ErrorData>> {
    if !server.settings.has_bridge {
        return None;
    }
    let answered = match request.method.as_str() {
        LIST_OPERATIONS => Ok(list(server)),
        READ_OUTPUT => match params(request) {
            Ok(params) => output(server, params).await,
            Err(error) => Err(error),
        },
        READ_FINDINGS => params(request).and_then(|params| findings(server, &params)),
        STOP_OPERATIONS => match params(request) {
            Ok(params) => stop(server, params).await,
            Err(error) => Err(error),
        },
        _ => return None,
    };
    Some(answered.map(CustomResult::new))
}

fn params<T: DeserializeOwned>(request: &CustomRequest) -> Result<T, ErrorData> {
    let malformed = || error::malformed(&request.method);
    request.params_as().ok().flatten().ok_or_else(malformed)
}

#[derive(Debug, Deserialize)]
struct OutputParams {
    id: String,
    /// Lines from this one on; without it the last ones.
    from_line: Option<u64>,
    lines: Option<u64>,
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

fn list(server: &Server) -> Value {
    let operations: Vec<Value> = server.engine.operations().iter().map(described).collect();
    json!({ "operations": operations })
}

fn described(operation: &Operation) -> Value {
    let snapshot = operation.snapshot();
    let outcome = operation.ended();
    json!({
        "id": snapshot.id,
        "client": operation.client().name(),
        "principal": operation.principal().name(),
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
        "cpu_ms": outcome.as_ref().and_then(|outcome| outcome.cpu).map(millis),
        "max_rss_bytes": outcome.as_ref().and_then(|outcome| outcome.peak_memory_bytes),
        "reason": snapshot.reason,
    })
}

fn found(server: &Server, id: &str) -> Result<Operation, ErrorData> {
    let unknown = || ErrorData::resource_not_found(format!("no operation is called {id}"), None);
    server.engine.get(id).ok_or_else(unknown)
}

async fn output(server: &Server, params: OutputParams) -> Result<Value, ErrorData> {
    let operation = found(server, &params.id)?;
    let lines = params.lines.unwrap_or(MAX_LINES).min(MAX_LINES);
    let query = match params.from_line {
        Some(line) => OutputQuery::Range {
            from: PageStart::Line(line.max(1)),
            max_lines: lines,
        },
        None => OutputQuery::Tail { lines },
    };
    let has_ended = operation.ended().is_some();
    let page = operation.output().read(query).await;
    let page = page.map_err(|error| error::unreadable("the output", &error))?;
    Ok(json!({
        "id": params.id,
        "text": page.text,
        "first_line": page.first_line,
        "lines": page.lines,
        "total_lines": page.total_lines,
        "total_bytes": page.total_bytes,
        "has_ended": has_ended,
    }))
}

fn findings(server: &Server, params: &FindingsParams) -> Result<Value, ErrorData> {
    let operation = found(server, &params.id)?;
    let page = operation.findings(params.from, operation.finding_budget());
    Ok(json!({
        "id": params.id,
        "findings": page.findings,
        "next": page.next,
        "kept": page.kept,
        "counts": page.counts,
    }))
}

/// Answers when nothing of them is left.
async fn stop(server: &Server, params: StopParams) -> Result<Value, ErrorData> {
    let operations = match &params.id {
        Some(id) => vec![found(server, id)?],
        None => server.engine.operations(),
    };
    let is_meant = |operation: &&Operation| {
        let principal = params.principal.as_deref();
        // The end of this server is not the end of what others run.
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
