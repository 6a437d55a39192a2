//! Input schemas: what a client is told about the arguments of a tool.

use serde_json::{Map, Value, json};

use crate::mtdf::{Leaf, MAX_TIMEOUT_SECONDS, Parameter, ValueType};

/// The properties that every tool has: they steer the call and never reach the command line.
pub fn meta_properties() -> Map<String, Value> {
    let properties = json!({
        "execution_mode": {
            "type": "string",
            "enum": ["synchronous", "asynchronous"],
            "description": "`synchronous` waits for the result; `asynchronous` returns an operation id at once.",
        },
        "timeout_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TIMEOUT_SECONDS,
            "description": "After this many seconds the command is stopped; what it printed so far is kept.",
        },
        "working_directory": {
            "type": "string",
            "description": "Where to run, relative to the sandbox scope; the scope itself when left out.",
        },
    });
    object(properties)
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
    let command = json!({ "type": "string", "description": "The script, as for `bash -c`." });
    schema(Map::from_iter([("command".to_owned(), command)]), vec!["command"])
}

fn schema(mut properties: Map<String, Value>, required: Vec<&str>) -> Map<String, Value> {
    properties.extend(meta_properties());
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
