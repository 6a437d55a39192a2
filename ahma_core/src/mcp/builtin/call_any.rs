//! `ahma_call`: calls any tool by its name, listed or not, exactly as a call of that tool would.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::registry::tool;
use crate::call::{ArgumentProblem, NamedArguments};

pub(in crate::mcp) const NAME: &str = "ahma_call";

pub(in crate::mcp) fn definition() -> Tool {
    let properties = json!({ "tool": { "type": "string" }, "arguments": { "type": "object" } });
    tool(
        NAME,
        "Runs a tool that ahma_find has found.",
        properties,
        &["tool"],
    )
    .with_annotations(
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(true),
    )
}

/// Name and arguments of the tool to call, or all mistakes in the call.
pub(in crate::mcp) fn target(arguments: JsonObject) -> Result<(String, JsonObject), Vec<ArgumentProblem>> {
    let mut arguments = NamedArguments::new(arguments);
    let name = arguments.required_text("tool");
    // Some models write nested arguments as text.
    let of_the_tool = arguments.take("arguments", "an object", |value| match value {
        Value::Object(object) => Some(object),
        Value::String(text) => serde_json::from_str(&text).ok(),
        _ => None,
    });
    if name == NAME {
        arguments.problem("tool", "must be another tool");
    }
    arguments.finish()?;
    Ok((name, of_the_tool.unwrap_or_default()))
}
