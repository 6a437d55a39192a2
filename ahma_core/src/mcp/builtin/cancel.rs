//! `cancel`: ends an operation, and answers when nothing of it is left.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, Tool, ToolAnnotations},
    service::RequestContext,
};
use serde_json::json;

use super::{Inner, arguments::Arguments, find, operation_schema, tool};
use crate::mcp::{error, owner, report::OperationReport};

const NAME: &str = "cancel";

const DESCRIPTION: &str = "Stops an operation with everything it started, and returns what it printed until then. \
    Answers when its processes are gone. An operation that has ended stays as it ended.";

pub(super) fn definition() -> Tool {
    let properties = json!({
        "operation_id": { "type": "string", "description": "Which operation." },
        "reason": { "type": "string", "description": "Why; it becomes part of the operation's result." },
    });
    tool(NAME, DESCRIPTION, properties, &["operation_id"])
        .with_raw_output_schema(operation_schema())
        .with_annotations(
            ToolAnnotations::with_title("Cancel an operation")
                .read_only(false)
                .destructive(true)
                .idempotent(true)
                .open_world(false),
        )
}

pub(super) async fn call(
    server: &Arc<Inner>,
    arguments: JsonObject,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let mut arguments = Arguments::new(arguments);
    let id = arguments.required_text("operation_id");
    let reason = arguments.text("reason");
    if let Err(problems) = arguments.finish() {
        return Ok(server.results.invalid_arguments(NAME, &problems));
    }
    let operation = match find(server, &owner::of(&ctx.meta), &id) {
        Ok(operation) => operation,
        Err(problem) => return Ok(server.results.refusal(problem)),
    };
    // Giving up this request does not take the stop back.
    let outcome = tokio::select! {
        biased;
        outcome = operation.cancel(reason) => outcome,
        () = ctx.ct.cancelled() => return Err(error::shutting_down()),
    };
    operation.mark_seen();
    let report = OperationReport::ended(&outcome);
    // Stopping it was what the caller wanted, so this is no failure.
    Ok(server.results.success(report.told(), &report))
}
