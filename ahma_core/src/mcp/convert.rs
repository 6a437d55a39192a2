//! From our types to those of the protocol; the one place where results and tool descriptions are made.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};

use super::{SandboxNote, report::OperationReport};
use crate::{catalog, mtdf::Annotations};

/// Makes results, each with a note about the sandbox.
#[derive(Debug)]
pub(super) struct Results {
    meta: MetaObject,
}

impl Results {
    pub(super) fn new(sandbox: &SandboxNote) -> Self {
        let mut meta = MetaObject::new();
        meta.0.insert(SANDBOX_META.to_owned(), sandbox_value(sandbox));
        Self { meta }
    }

    /// What a tool has to say for people and for programs.
    pub(super) fn success(&self, text: String, structured: &impl Serialize) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = serde_json::to_value(structured).ok();
        result.with_meta(Some(self.meta.clone()))
    }

    /// How one operation stands or ended.
    pub(super) fn operation(&self, report: &OperationReport) -> CallToolResult {
        let mut result = self.success(report.text(), report);
        result.is_error = Some(report.is_failure());
        result
    }

    /// A call that no tool could take: the model may read why, and try again.
    pub(super) fn refusal(&self, text: impl Into<String>) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(text)]).with_meta(Some(self.meta.clone()))
    }

    /// Arguments that do not fit, with everything that is wrong.
    pub(super) fn invalid_arguments(&self, tool: &str, problems: &[impl ToString]) -> CallToolResult {
        let problems: Vec<String> = problems
            .iter()
            .map(|problem| format!("\n- {}", problem.to_string()))
            .collect();
        self.refusal(format!(
            "the arguments of `{tool}` are not valid:{}",
            problems.concat()
        ))
    }
}

/// Under this name the `_meta` of a result tells what confined the command.
const SANDBOX_META: &str = "ahma/sandbox";

pub(super) fn sandbox_value(sandbox: &SandboxNote) -> Value {
    let mut value = json!({ "tier": sandbox.tier, "scope": sandbox.scope.display().to_string(), "network": sandbox.network });
    if let Some(warning) = &sandbox.warning {
        value["warning"] = warning.as_str().into();
    }
    value
}

/// A tool of the catalogue as `tools/list` shows it.
pub(super) fn tool(tool: &catalog::Tool) -> Tool {
    Tool::new(
        tool.name.clone(),
        tool.description.clone(),
        tool.input_schema.clone(),
    )
    .with_annotations(annotations(&tool.annotations))
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

/// The schema of what a tool answers, with everything in one place and without alternatives for absent values.
pub(super) fn output_schema<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

/// Absent values are left out, never null, and number formats say nothing to a client.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(alternatives)) = object.get_mut("anyOf") {
                alternatives.retain(|alternative| alternative["type"] != "null");
                if alternatives.len() == 1
                    && let Some(Value::Array(alternatives)) = object.remove("anyOf")
                    && let Some(Value::Object(only)) = alternatives.into_iter().next()
                {
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
            object.remove("format");
            object.remove("title");
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
