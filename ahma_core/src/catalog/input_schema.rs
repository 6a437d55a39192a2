//! Input schemas, by which clients know the arguments of a tool.

use serde_json::{Map, Value, json};

use crate::mtdf::{Leaf, Parameter, ValueType, object};

/// The properties that every tool has: they steer the call and never reach the command line. Every tool repeats them, so
/// they have no prose; the instructions of the server explain them once.
fn meta_properties() -> Map<String, Value> {
    object(json!({
        "execution_mode": { "type": "string" },
        "timeout_seconds": { "type": "integer" },
        "working_directory": { "type": "string" },
    }))
}

pub(super) fn input_schema(leaf: &Leaf) -> Map<String, Value> {
    let properties = leaf
        .parameters()
        .map(|parameter| (parameter.name.clone(), property(parameter)));
    let required = leaf.parameters().filter(|parameter| parameter.required);
    schema(
        properties.collect(),
        required.map(|parameter| parameter.name.as_str()).collect(),
    )
}

pub(super) fn shell_schema() -> Map<String, Value> {
    let properties = object(json!({
        "command": { "type": "string" },
        "stdin": { "type": "string" },
        "env": { "type": "object" },
        "keep_running": { "type": "boolean" },
        "ready": { "type": "string" },
    }));
    schema(properties, vec!["command"])
}

fn schema(mut properties: Map<String, Value>, required: Vec<&str>) -> Map<String, Value> {
    properties.extend(meta_properties());
    object_schema(properties.into(), &required)
}

/// The schema of an object with these properties.
pub(crate) fn object_schema(properties: Value, required: &[&str]) -> Map<String, Value> {
    let mut schema = json!({ "type": "object", "properties": properties });
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
