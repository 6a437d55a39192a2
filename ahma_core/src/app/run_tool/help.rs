//! What a tool takes, as `--help` shows it.

use serde_json::Value;

use super::words::{EXECUTION_MODE, positional_names, properties};
use crate::catalog::Tool;

pub(super) fn text(tool: &Tool) -> String {
    let positional = positional_names(tool);
    let required: Vec<&str> = (tool
        .input_schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter())
    .flatten()
    .filter_map(Value::as_str)
    .collect();
    let mut text = format!(
        "{}\n\nUsage: ahma_mcp run {}",
        tool.leaf.description.trim(),
        tool.name
    );
    for name in required
        .iter()
        .filter(|name| !positional.iter().any(|known| known == *name))
    {
        text.push_str(&format!(" --{name} <VALUE>"));
    }
    text.push_str(" [OPTIONS]");
    for name in &positional {
        text.push_str(&if required.contains(&name.as_str()) {
            format!(" <{name}>")
        } else {
            format!(" [{name}]")
        });
    }
    text.push_str("\n\nArguments, each also as --NAME=VALUE:\n");
    for (name, schema) in properties(tool).filter(|(name, _)| *name != EXECUTION_MODE) {
        let alias = tool
            .leaf
            .parameters()
            .find(|parameter| parameter.name == name)
            .and_then(|parameter| parameter.alias.as_deref());
        text.push_str(&entry(&written(name, alias), schema, required.contains(&name)));
    }
    text
}

/// With its second name: one letter has one dash.
fn written(name: &str, alias: Option<&str>) -> String {
    match alias {
        None => format!("--{name}"),
        Some(alias) if alias.chars().count() == 1 => format!("-{alias}, --{name}"),
        Some(alias) => format!("--{alias}, --{name}"),
    }
}

fn entry(name: &str, schema: &Value, required: bool) -> String {
    let kind = match schema["type"].as_str() {
        Some("boolean") => String::new(),
        Some("array") => format!(" <{}>...", schema["items"]["type"].as_str().unwrap_or("value")),
        Some(kind) => format!(" <{kind}>"),
        None => " <value>".to_owned(),
    };
    let mut remarks = Vec::new();
    if required {
        remarks.push("required".to_owned());
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<_> = choices.iter().map(plain).collect();
        remarks.push(format!("one of {}", choices.join(", ")));
    }
    if let Some(default) = schema.get("default") {
        remarks.push(format!("default {}", plain(default)));
    }
    let remarks = (!remarks.is_empty()).then(|| format!("[{}]", remarks.join("; ")));
    let described = schema["description"].as_str().map(str::to_owned);
    let details: Vec<String> = described.into_iter().chain(remarks).collect();
    if details.is_empty() {
        return format!("  {name}{kind}\n");
    }
    format!("  {name}{kind}\n          {}\n", details.join(" "))
}

/// Texts without the quotes of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
