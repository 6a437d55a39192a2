//! `output` with `to`: writes an output or a report into a file of the scope, the way `file_write` does, behind the sandbox.

use std::sync::Arc;

use rmcp::{ErrorData, RoleServer, model::CallToolResult, service::RequestContext};
use serde_json::json;

use super::output_lines::LineArguments;
use crate::{
    call::ToolCall,
    mcp::{client_id, error, report::OperationReport, server::Server},
    operation::{CallOrigin, Operation, preflight},
};

/// As much as the file tools take.
const MAX_BYTES: u64 = 16 << 20;

const FILE_WRITE: &str = "file_write";

/// The lines that were chosen, or all that was printed.
pub(super) async fn document(operation: &Operation, lines: LineArguments) -> Result<String, String> {
    let unreadable = |error| format!("the output cannot be read: {error}");
    if lines.given().next().is_some() {
        let page = operation.output().read(lines.query()).await;
        return page.map(|page| page.text).map_err(unreadable);
    }
    let (_, bytes) = operation.output().size();
    if bytes > MAX_BYTES {
        return Err(format!(
            "the output is {bytes} bytes long, more than the {MAX_BYTES} that can be written: choose lines with grep or tail"
        ));
    }
    let output = operation.output();
    let bytes = output.bytes(0, MAX_BYTES as usize).await.map_err(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes the document, and answers as `file_write` would.
pub(super) async fn write(
    server: &Arc<Server>,
    path: String,
    document: String,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let toolbox = server.toolbox.loaded().await;
    if toolbox.offered.get(FILE_WRITE).is_none() {
        let reason = "`to` needs the file tools, which are switched off (--files off)";
        return Ok(server.results.refusal(reason));
    }
    let arguments = json!({ "path": path, "content": document });
    let call = ToolCall {
        tool: FILE_WRITE.to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    };
    let plan = match preflight(&toolbox.offered, &server.settings.plan, call).await {
        Ok(plan) => plan,
        Err(problem) => return Ok(server.results.refusal(problem.to_string())),
    };
    let origin = CallOrigin {
        client: client_id::of(&ctx.meta),
        principal: client_id::principal(server, &ctx.meta),
        program: ctx.client_info().map(|client| client.name),
        arguments: None,
    };
    let operation = server.engine.start_for(origin, plan);
    let outcome = tokio::select! {
        biased;
        outcome = operation.outcome() => outcome,
        () = ctx.ct.cancelled() => return Err(error::cancelled()),
    };
    operation.mark_seen();
    Ok(server.results.operation(&OperationReport::ended(&outcome)))
}
