//! The tools that come with the server: they look after operations that other tools started.
//!
//! `sandboxed_shell` is in the catalogue and runs like any tool; only its output schema is given here.

mod arguments;
mod cancel;
mod output;
mod status;
mod wait;

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, Tool, ToolAnnotations},
    service::RequestContext,
};
use serde_json::{Value, json};

use self::arguments::Arguments;
use super::{Inner, convert, owner, report::OperationReport};
use crate::{
    mtdf::nearest,
    operation::{Operation, Owner},
};

pub(super) use status::{RemoteReport, StatusReport, report as status_report};
#[cfg(feature = "bridge")]
pub(crate) use wait::LONGEST_WAIT_SECONDS;

/// One of the tools that are not in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    Await,
    Cancel,
    Output,
    Status,
}

impl Builtin {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        match name {
            "await" => Some(Self::Await),
            "cancel" => Some(Self::Cancel),
            "output" => Some(Self::Output),
            "status" => Some(Self::Status),
            _ => None,
        }
    }

    pub(super) async fn call(
        self,
        server: &Arc<Inner>,
        arguments: JsonObject,
        ctx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        match self {
            Self::Await => wait::call(server, arguments, ctx).await,
            Self::Cancel => cancel::call(server, arguments, ctx).await,
            Self::Output => output::call(server, arguments, ctx).await,
            Self::Status => Ok(status::call(server, arguments, &owner::of(&ctx.meta))),
        }
    }
}

/// The argument that names operations.
const OPERATION_IDS: &str = "operation_ids";

/// More are named at once by mistake only. Looking for them takes time that nobody else is served in.
const MOST_IDS: usize = 1_000;

/// Unknown operations that are named in the answer. Finding names that are near takes much longer than finding a name.
const MOST_UNKNOWN: usize = 10;

/// As `tools/list` shows them, in the order of their names.
pub(super) fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
        vec![
            wait::definition(),
            cancel::definition(),
            output::definition(),
            status::definition(),
        ]
    });
    &TOOLS
}

/// A built-in tool as it is described where nobody speaks the protocol.
#[derive(Debug, Clone)]
pub(crate) struct BuiltinTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Arc<JsonObject>,
}

/// The same tools, for whoever lists them without a client.
pub(crate) fn descriptions() -> Vec<BuiltinTool> {
    let describe = |tool: &Tool| BuiltinTool {
        name: tool.name.to_string(),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        input_schema: Arc::clone(&tool.input_schema),
    };
    tools().iter().map(describe).collect()
}

/// What every tool that runs a command answers.
pub(super) fn operation_schema() -> Arc<JsonObject> {
    static SCHEMA: LazyLock<Arc<JsonObject>> = LazyLock::new(convert::output_schema::<OperationReport>);
    SCHEMA.clone()
}

/// A tool that touches nothing but operations.
fn tool(name: &'static str, description: &'static str, properties: Value, required: &[&str]) -> Tool {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Tool::new(name, description, Arc::new(schema))
}

/// Whether a count says nothing that a report needs.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn reads_only(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title)
        .read_only(true)
        .idempotent(true)
        .open_world(false)
}

/// The client's operations that are named in the arguments, each once; nothing if none is named.
fn chosen(server: &Inner, owner: &Owner, arguments: &mut Arguments) -> Option<Vec<Operation>> {
    let mut ids = arguments.texts(OPERATION_IDS, MOST_IDS)?;
    let mut known = HashSet::new();
    ids.retain(|id| known.insert(id.clone()));
    let mut operations = Vec::new();
    let mut unknown = Vec::new();
    for id in ids {
        match get(server, owner, &id) {
            Some(operation) => operations.push(operation),
            None => unknown.push(id),
        }
    }
    let unnamed = unknown.split_off(unknown.len().min(MOST_UNKNOWN)).len();
    for id in unknown {
        let problem = unknown_operation(server, owner, &id);
        arguments.problem(format!("{OPERATION_IDS}: {problem}"));
    }
    if unnamed > 0 {
        arguments.problem(format!("{OPERATION_IDS}: {unnamed} more are not known"));
    }
    Some(operations)
}

/// The client's operation of that name, or what to say about it.
fn find(server: &Inner, owner: &Owner, id: &str) -> Result<Operation, String> {
    get(server, owner, id).ok_or_else(|| unknown_operation(server, owner, id))
}

fn get(server: &Inner, owner: &Owner, id: &str) -> Option<Operation> {
    let found = server.engine.get(id);
    found.filter(|found| found.owner() == owner)
}

fn unknown_operation(server: &Inner, owner: &Owner, id: &str) -> String {
    let known = server.engine.operations_of(owner);
    match nearest(id, known.iter().map(|operation| operation.id().as_str())).first() {
        Some(near) => format!("no operation is called {id}; did you mean {near}?"),
        None => format!("no operation is called {id}; status lists those that are known"),
    }
}
