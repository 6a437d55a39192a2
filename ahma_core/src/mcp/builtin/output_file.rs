//! `file_write` with `from_output`: the content of the file is what an operation printed, or a report of its findings.
//!
//! Only the server knows operations, so the content is put into the call here; from then on it is a call like any other,
//! and the file is written behind the sandbox.

use std::sync::Arc;

use rmcp::{RoleServer, service::RequestContext};
use serde_json::Map;

use super::{lookup::find, output_findings::FindingArguments};
use crate::{
    call::{ArgumentProblem, CallError, NamedArguments, ToolCall},
    mcp::{client, server::Server},
    mtdf::plain_name,
    operation::Operation,
};

/// Limit of the file tools.
const MAX_BYTES: u64 = 16 << 20;

/// The tool whose calls may name an operation.
pub(in crate::mcp) const FILE_WRITE: &str = "file_write";
const FROM_OUTPUT: &str = "from_output";

/// A call of [`FILE_WRITE`] with the content that it asks for.
pub(in crate::mcp) async fn with_content(
    server: &Arc<Server>,
    mut call: ToolCall,
    ctx: &RequestContext<RoleServer>,
) -> Result<ToolCall, CallError> {
    let asks = |name: &str| plain_name(name) == FROM_OUTPUT;
    if !call.arguments.keys().any(|name| asks(name)) {
        return Ok(call);
    }
    let (source, mut arguments): (Map<_, _>, Map<_, _>) =
        (call.arguments.into_iter()).partition(|(name, _)| asks(name) || plain_name(name) == "format");
    let refuse = |problems| CallError::Invalid {
        tool: FILE_WRITE.to_owned(),
        problems,
    };
    let mut source = NamedArguments::new(source);
    let id = source.text(FROM_OUTPUT);
    let findings = FindingArguments::take(&mut source);
    if id.is_some() && arguments.get("content").is_some_and(|content| !content.is_null()) {
        source.problem("content", format!("cannot be combined with `{FROM_OUTPUT}`"));
    }
    source.finish().map_err(refuse)?;
    if let Some(id) = id {
        let caller = client::caller(server, &ctx.meta);
        let content = match find(server, &caller, &id).await {
            Ok(operation) if findings.format.is_some() => findings.document(&operation),
            Ok(operation) => printed(&operation).await,
            Err(problem) => Err(problem),
        };
        let refuse_source = |reason| refuse(vec![ArgumentProblem::new(FROM_OUTPUT, reason)]);
        let content = content.map_err(|problem| refuse_source(format!("cannot be written: {problem}")))?;
        arguments.insert("content".to_owned(), content.into());
    }
    call.arguments = arguments;
    Ok(call)
}

/// All that was printed.
async fn printed(operation: &Operation) -> Result<String, String> {
    let output = operation.output();
    let (_, bytes) = output.size();
    if bytes > MAX_BYTES {
        return Err(format!(
            "the output is {bytes} bytes long, more than the {MAX_BYTES} that a file tool takes; let the command itself \
             write to a file"
        ));
    }
    match output.bytes(0, MAX_BYTES as usize).await {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(format!("the output cannot be read: {error}")),
    }
}
