//! The table of built-in tools, and the form that their descriptions share.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, Tool, ToolAnnotations},
    service::RequestContext,
};
use serde_json::Value;

use super::{call_any, cancel, find, output, status, wait};
use crate::{
    catalog::{Expose, object_schema},
    mcp::{client, error::CallRefusal, server::Server},
};

/// One of the tools that are not in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) enum Builtin {
    Await,
    Cancel,
    Find,
    Output,
    Status,
}

impl Builtin {
    pub(in crate::mcp) fn by_name(name: &str) -> Option<Self> {
        match name {
            "await" => Some(Self::Await),
            "cancel" => Some(Self::Cancel),
            find::NAME => Some(Self::Find),
            "output" => Some(Self::Output),
            "status" => Some(Self::Status),
            _ => None,
        }
    }

    pub(in crate::mcp) async fn call(
        self,
        server: &Arc<Server>,
        arguments: JsonObject,
        ctx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, CallRefusal> {
        match self {
            Self::Await => wait::call(server, arguments, ctx).await,
            Self::Cancel => cancel::call(server, arguments, ctx).await,
            Self::Find => find::call(server, arguments, ctx).await,
            Self::Output => output::call(server, arguments, ctx).await,
            Self::Status => status::call(server, arguments, &client::caller(server, &ctx.meta)).await,
        }
    }
}

/// The tools for `tools/list`, in the order of their names. `hidden_families` are those of tools that are not listed.
pub(in crate::mcp) fn tools(hidden_families: &BTreeSet<&str>, expose: Expose) -> Vec<Tool> {
    let mut tools = Vec::new();
    if !hidden_families.is_empty() {
        tools.extend([call_any::definition(), find::definition(hidden_families, expose)]);
    }
    tools.extend([
        wait::definition(),
        cancel::definition(),
        output::definition(),
        status::definition(),
    ]);
    tools
}

/// Description of a built-in tool without types of the protocol.
#[derive(Debug, Clone)]
pub(crate) struct BuiltinTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Arc<JsonObject>,
}

/// Descriptions of those that are always there.
pub(crate) fn descriptions() -> Vec<BuiltinTool> {
    let describe = |tool: &Tool| BuiltinTool {
        name: tool.name.to_string(),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        input_schema: Arc::clone(&tool.input_schema),
    };
    let tools = tools(&BTreeSet::new(), Expose::All);
    tools.iter().map(describe).collect()
}

/// A tool that touches nothing but operations.
pub(super) fn tool(
    name: &'static str,
    description: impl Into<Cow<'static, str>>,
    properties: Value,
    required: &[&str],
) -> Tool {
    Tool::new(name, description, Arc::new(object_schema(properties, required)))
}

/// For serde: a count that a report leaves out.
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) fn reads_only() -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false)
}
