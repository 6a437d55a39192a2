//! Protocol errors: for requests that cannot be handed to a tool at all. The refusal of a call by a tool is a result (see
//! `convert`), because clients show results to the model and hide errors.

use rmcp::{ErrorData, model::CallToolResult};
use serde_json::json;

/// Reason why a call ends early: a refusal for the model to read, or a protocol error.
#[derive(Debug)]
pub(super) enum CallRefusal {
    Answer(Box<CallToolResult>),
    Error(ErrorData),
}

impl From<CallToolResult> for CallRefusal {
    fn from(answer: CallToolResult) -> Self {
        Self::Answer(Box::new(answer))
    }
}

impl From<ErrorData> for CallRefusal {
    fn from(error: ErrorData) -> Self {
        Self::Error(error)
    }
}

pub(super) fn unknown_tool(name: &str, nearest: &[String]) -> ErrorData {
    let message = match nearest {
        [] => format!("unknown tool `{name}`; tools/list and ahma_find name those that exist"),
        _ => format!("unknown tool `{name}`; did you mean `{}`?", nearest.join("`, `")),
    };
    ErrorData::invalid_params(message, Some(json!({ "nearest": nearest })))
}

pub(super) fn unknown_resource(uri: &str) -> ErrorData {
    let message = format!("no resource is at {uri}; resources/list and resources/templates/list name them");
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

pub(super) fn unknown_prompt(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("unknown prompt `{name}`; this server has none"), None)
}

pub(super) fn unknown_cursor(cursor: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("unknown cursor `{cursor}`; lists come whole, so leave it out"),
        None,
    )
}

pub(super) fn unknown_task(id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("unknown task: {id}"), None)
}

/// A request of a known kind whose parameters do not have the form that kind has.
pub(super) fn malformed(method: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("the parameters of {method} do not have the form it asks for"),
        None,
    )
}

pub(super) fn unreadable(what: &str, error: &dyn std::error::Error) -> ErrorData {
    tracing::error!(%error, "{what} could not be read");
    ErrorData::internal_error(format!("{what} could not be read: {error}"), None)
}

/// The client gave up the request, so it does not read this.
pub(super) fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}

pub(super) fn shutting_down() -> ErrorData {
    ErrorData::internal_error("the server is shutting down", None)
}

/// Calls that were waiting when the sandbox turned out not to hold; the server ends.
pub(super) fn no_sandbox() -> ErrorData {
    ErrorData::internal_error("nothing can be run: the sandbox could not be set up", None)
}
