//! Input schemas: what a client is told about the arguments of a tool.

use serde_json::{Map, Value, json};

use super::tool::CatalogSettings;
use crate::mtdf::{Leaf, Parameter, ValueType};

/// The properties that every tool has: they steer the call and never reach the command line. Every tool repeats them, so
/// they say no more than a model needs; a call that gets them wrong hears the rest.
fn meta_properties(default_mode: &str) -> Map<String, Value> {
    let properties = json!({
        "execution_mode": {
            "type": "string",
            "enum": ["synchronous", "asynchronous"],
            "default": default_mode,
            "description": "asynchronous returns an operation id.",
        },
        "timeout_seconds": { "type": "integer", "minimum": 1 },
        "working_directory": { "type": "string", "description": "Relative to the sandbox scope." },
    });
    object(properties)
}

/// How a call runs that does not say so itself.
pub(super) fn default_mode(leaf: &Leaf, settings: CatalogSettings) -> &'static str {
    if settings.force_sync || leaf.synchronous == Some(true) {
        "synchronous"
    } else {
        "asynchronous"
    }
}

pub(super) fn input_schema(leaf: &Leaf, default_mode: &str) -> Map<String, Value> {
    let properties = leaf
        .parameters()
        .map(|parameter| (parameter.name.clone(), property(parameter)));
    let required = leaf.parameters().filter(|parameter| parameter.required);
    schema(
        properties.collect(),
        required.map(|parameter| parameter.name.as_str()).collect(),
        default_mode,
    )
}

pub(super) fn shell_schema(default_mode: &str) -> Map<String, Value> {
    let command = json!({ "type": "string", "description": "The script, as for `bash -c`." });
    let properties = Map::from_iter([("command".to_owned(), command)]);
    schema(properties, vec!["command"], default_mode)
}

fn schema(mut properties: Map<String, Value>, required: Vec<&str>, default_mode: &str) -> Map<String, Value> {
    properties.extend(meta_properties(default_mode));
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    object(schema)
}

fn property(parameter: &Parameter) -> Value {
    let mut property = parameter.value.schema();
    if parameter.required && matches!(parameter.value, ValueType::Array(_)) {
        property.insert("minItems".into(), 1.into());
    }
    if let Some(description) = &parameter.description {
        property.insert("description".into(), description.as_str().into());
    }
    if let Some(default) = &parameter.default {
        property.insert("default".into(), default.clone());
    }
    Value::Object(property)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
