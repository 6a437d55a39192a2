//! Finds the operations that a call of a built-in tool names.

use std::collections::HashSet;

use ahma_common::nearest;
use rmcp::{RoleServer, model::Tool, service::RequestContext};

use crate::{
    call::NamedArguments,
    mcp::{
        client::{self, Caller},
        error::CallRefusal,
        server::Server,
    },
    operation::Operation,
};

/// The argument that names operations.
pub(super) const OPERATION_IDS: &str = "operation_ids";

/// The argument that names one operation. Each is taken for the other where only one can be meant.
const OPERATION_ID: &str = "operation_id";

/// More are named at once by mistake only, and looking for them keeps all other clients waiting.
const MAX_IDS: usize = 1_000;

/// Unknown operations named in an answer. Finding similar names takes much longer than finding a name.
const MAX_UNKNOWN: usize = 10;

/// The caller's operations that are named in the arguments, each once; nothing if none is named.
pub(super) async fn chosen(
    server: &Server,
    caller: &Caller,
    arguments: &mut NamedArguments,
) -> Option<Vec<Operation>> {
    arguments.aliases(OPERATION_IDS, &[OPERATION_ID]);
    let mut ids = arguments.texts(OPERATION_IDS, MAX_IDS)?;
    let mut known = HashSet::new();
    ids.retain(|id| known.insert(id.clone()));
    let mut operations = Vec::new();
    let mut unknown = Vec::new();
    for id in ids {
        match server.operation_of(&caller.principal, &id).await {
            Some(operation) => operations.push(operation),
            None => unknown.push(id),
        }
    }
    let unnamed = unknown.split_off(unknown.len().min(MAX_UNKNOWN)).len();
    for id in unknown {
        let problem = unknown_operation(server, caller, &id);
        arguments.problem(OPERATION_IDS, format!("is wrong: {problem}"));
    }
    if unnamed > 0 {
        arguments.problem(OPERATION_IDS, format!("has {unnamed} more that are not known"));
    }
    Some(operations)
}

/// The name of the one operation that a call is about.
pub(super) fn required_id(arguments: &mut NamedArguments) -> String {
    arguments.aliases(OPERATION_ID, &[OPERATION_IDS]);
    arguments.required_text(OPERATION_ID)
}

/// Refuses a call with wrong arguments, with a description of those that the tool takes.
pub(super) fn finish(
    server: &Server,
    arguments: NamedArguments,
    tool: impl FnOnce() -> Tool,
) -> Result<(), CallRefusal> {
    let finished = arguments.finish();
    finished.map_err(|problems| server.results.invalid_arguments(&tool(), problems).into())
}

/// The operation that a call is about; an unknown one is refused.
pub(super) async fn required(
    server: &Server,
    ctx: &RequestContext<RoleServer>,
    id: &str,
) -> Result<Operation, CallRefusal> {
    let found = find(server, &client::caller(server, &ctx.meta), id).await;
    found.map_err(|problem| server.results.refusal(problem).into())
}

/// The caller's operation of that name, or the reason why there is none.
pub(super) async fn find(server: &Server, caller: &Caller, id: &str) -> Result<Operation, String> {
    let found = server.operation_of(&caller.principal, id).await;
    found.ok_or_else(|| unknown_operation(server, caller, id))
}

fn unknown_operation(server: &Server, caller: &Caller, id: &str) -> String {
    let known = server.engine.operations_of(&caller.client);
    match nearest(id, known.iter().map(|operation| operation.id().as_str())).first() {
        Some(near) => format!("no operation is called {id}; did you mean {near}?"),
        None => format!("no operation is called {id}; status lists those that are known"),
    }
}
