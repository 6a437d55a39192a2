//! From our types to those of the protocol; the one place where results and tool descriptions are made.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject, RequestMetaObject, Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    report::OperationReport,
    server::{ResultForm, SandboxNote},
};
use crate::{
    call::{ArgumentProblem, CallError},
    catalog,
    mtdf::{Annotations, SHELL_TOOL},
};

/// Makes results, each with a note about the sandbox.
#[derive(Debug)]
pub(super) struct ResultBuilder {
    meta: MetaObject,
}

impl ResultBuilder {
    pub(super) fn new(sandbox: &SandboxNote) -> Self {
        let mut meta = MetaObject::new();
        meta.0.insert(SANDBOX_META.to_owned(), sandbox_value(sandbox));
        Self { meta }
    }

    /// The answer of a tool, as text and as data.
    pub(super) fn success(&self, text: String, structured: &impl Serialize) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = serde_json::to_value(structured).ok();
        result.with_meta(Some(self.meta.clone()))
    }

    /// The answer of a tool that has nothing to say but a text.
    pub(super) fn message(&self, text: String) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(text)]).with_meta(Some(self.meta.clone()))
    }

    /// The answer about one operation, with what programs need to know of it.
    pub(super) fn about(&self, report: &OperationReport, text: String) -> CallToolResult {
        let mut result = self.success(text, report);
        let meta = result.meta.get_or_insert_default();
        meta.0.insert(OPERATION_META.to_owned(), report.reference());
        result
    }

    /// State or end of one operation.
    pub(super) fn operation(&self, report: &OperationReport) -> CallToolResult {
        let mut result = self.about(report, report.text());
        result.is_error = Some(report.is_failure());
        result
    }

    /// The refusal of a call, for the model to read.
    pub(super) fn refusal(&self, text: impl Into<String>) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(text)]).with_meta(Some(self.meta.clone()))
    }

    /// The refusal of arguments, with all mistakes and a description of the tool's arguments.
    pub(super) fn invalid_arguments(&self, tool: &Tool, problems: Vec<ArgumentProblem>) -> CallToolResult {
        let usage = catalog::usage(&tool.name, &tool.input_schema);
        let error = CallError::Invalid {
            tool: tool.name.to_string(),
            problems,
        };
        self.refusal(format!("{error}\n{usage}"))
    }
}

/// Key in the `_meta` of a result for id, status and exit code of its operation.
pub(super) const OPERATION_META: &str = "ahma/operation";

/// Key of the same in a result about several operations.
const OPERATIONS_META: &str = "ahma/operations";

/// A result with what programs need to know of the operations in it.
pub(super) fn with_operations(mut result: CallToolResult, reports: &[OperationReport]) -> CallToolResult {
    let meta = result.meta.get_or_insert_default();
    match reports {
        [] => {}
        [only] => _ = meta.0.insert(OPERATION_META.to_owned(), only.reference()),
        several => {
            let references = several.iter().map(OperationReport::reference).collect();
            meta.0.insert(OPERATIONS_META.to_owned(), references);
        }
    }
    result
}

/// Key in the `_meta` of a request that asks for structured results.
const STRUCTURED_META: &str = "ahma/structured";

/// The form of result that a request asks for.
pub(super) fn wanted_form(default: ResultForm, meta: &RequestMetaObject) -> ResultForm {
    match meta.0.get(STRUCTURED_META).and_then(Value::as_bool) {
        Some(true) => ResultForm::Structured,
        Some(false) => ResultForm::Text,
        None => default,
    }
}

/// A result of ours in that form.
pub(super) fn in_form(mut result: CallToolResult, form: ResultForm) -> CallToolResult {
    if form == ResultForm::Text {
        result.structured_content = None;
    }
    result
}

/// Key in the `_meta` of a result for the sandbox of the command.
const SANDBOX_META: &str = "ahma/sandbox";

pub(super) fn sandbox_value(sandbox: &SandboxNote) -> Value {
    let scope = sandbox.scope.display().to_string();
    let mut value = match &sandbox.pool {
        Some(pool) => json!({ "pool": pool, "scope": scope }),
        None => json!({ "tier": sandbox.tier, "scope": scope, "network": sandbox.network }),
    };
    if let Some(warning) = &sandbox.warning {
        value["warning"] = warning.as_str().into();
    }
    value
}

/// A tool of the catalog as `tools/list` shows it.
pub(super) fn tool(tool: &catalog::Tool) -> Tool {
    let shown = Tool::new(
        tool.name.clone(),
        tool.description.clone(),
        tool.input_schema.clone(),
    )
    .with_annotations(annotations(&tool.annotations));
    if ALWAYS_LOADED.contains(&tool.name.as_str()) {
        shown.with_meta(client_meta("anthropic/alwaysLoad", true))
    } else {
        shown
    }
}

/// Tools that clients with deferred loading should load at once: every task begins with one of them.
const ALWAYS_LOADED: [&str; 3] = [SHELL_TOOL, "file_edit", "file_read"];

/// Metadata of a tool under a name that clients know.
pub(super) fn client_meta(name: &str, value: impl Into<Value>) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0.insert(name.to_owned(), value.into());
    meta
}

fn annotations(annotations: &Annotations) -> ToolAnnotations {
    let Annotations {
        title,
        read_only,
        destructive,
        idempotent,
        open_world,
    } = annotations;
    ToolAnnotations::from_raw(title.clone(), *read_only, *destructive, *idempotent, *open_world)
}
