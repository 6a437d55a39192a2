//! `cancel`: ends an operation, and answers when nothing of it is left.

use std::sync::Arc;

use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, Tool, ToolAnnotations},
    service::RequestContext,
};
use serde_json::json;

use super::{
    lookup::{finish, required, required_id},
    registry::tool,
};
use crate::{
    call::NamedArguments,
    mcp::{
        error::{self, CallRefusal},
        report::OperationReport,
        server::Server,
    },
};

const NAME: &str = "cancel";

/// Enough to see where it was; the rest is read with `output`.
const SHOWN_LINES: usize = 20;

const DESCRIPTION: &str = "Stops an operation and all it started; shows its last lines.";

pub(super) fn definition() -> Tool {
    let properties = json!({ "operation_id": { "type": "string" }, "reason": { "type": "string" } });
    tool(NAME, DESCRIPTION, properties, &["operation_id"]).with_annotations(
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(true)
            .open_world(false),
    )
}

pub(super) async fn call(
    server: &Arc<Server>,
    arguments: JsonObject,
    ctx: &RequestContext<RoleServer>,
) -> Result<CallToolResult, CallRefusal> {
    let mut arguments = NamedArguments::new(arguments);
    let id = required_id(&mut arguments);
    let reason = arguments.text("reason");
    finish(server, arguments, definition)?;
    let operation = required(server, ctx, &id).await?;
    // The operation is stopped even if the client gives up this request.
    let outcome = tokio::select! {
        biased;
        outcome = operation.cancel(reason) => outcome,
        () = ctx.ct.cancelled() => return Err(error::shutting_down().into()),
    };
    operation.mark_seen();
    let mut report = OperationReport::ended(&outcome);
    report.keep_last_lines(SHOWN_LINES);
    // Stopping it was what the caller wanted, so this is no failure.
    Ok(server.results.about(&report, report.told()))
}
