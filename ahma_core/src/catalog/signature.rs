//! A tool's arguments on one line, for a model that has not seen its schema.

use serde_json::{Map, Value};

use super::tool::Tool;
use crate::mtdf::META_PARAMETERS;

/// Values of an enumeration that are listed; a longer one is a string.
const MAX_LISTED_VALUES: usize = 8;

/// A tool as a search knows it, wherever it runs.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub input_schema: &'a Map<String, Value>,
}

impl Described<'_> {
    /// `name {required: string, optional?: integer}`; parameters that every tool has are left out.
    pub fn signature(&self) -> String {
        format!("{} {}", self.name, arguments(self.input_schema))
    }

    /// First sentence of the description.
    pub fn summary(&self) -> &str {
        match self.description.find(". ") {
            Some(end) => &self.description[..=end],
            None => self.description,
        }
    }
}

impl Tool {
    pub fn described(&self) -> Described<'_> {
        Described {
            name: &self.name,
            description: &self.description,
            input_schema: &self.input_schema,
        }
    }
}

/// Everything that a tool takes, on one line: `name takes {…} and working_directory`.
pub fn usage(name: &str, schema: &Map<String, Value>) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_taken = |name: &&str| properties.is_some_and(|properties| properties.contains_key(*name));
    let meta: Vec<&str> = META_PARAMETERS.into_iter().filter(is_taken).collect();
    let and = if meta.is_empty() { "" } else { " and " };
    format!("{name} takes {}{and}{}", arguments(schema), meta.join(", "))
}

/// The properties of an object schema with their types, required ones first.
pub fn arguments(schema: &Map<String, Value>) -> String {
    let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut arguments: Vec<(bool, String)> = properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| !META_PARAMETERS.contains(&name.as_str()))
        .map(|(name, property)| {
            let optional = !required.contains(&name.as_str());
            let mark = if optional { "?" } else { "" };
            (optional, format!("{name}{mark}: {}", type_of(property)))
        })
        .collect();
    // Stable, so that the order of the file stays within each group.
    arguments.sort_by_key(|(optional, _)| *optional);
    let arguments: Vec<String> = arguments.into_iter().map(|(_, text)| text).collect();
    format!("{{{}}}", arguments.join(", "))
}

fn type_of(property: &Value) -> String {
    if let Some(values) = property.get("enum").and_then(Value::as_array)
        && values.len() <= MAX_LISTED_VALUES
    {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join("|");
    }
    match property.get("type").and_then(Value::as_str) {
        Some("array") => format!("{}[]", property.get("items").map_or("any".into(), type_of)),
        Some(name) => name.to_owned(),
        None => "any".into(),
    }
}
