//! `--mode list-tools`: what a client would be offered, and what is missing.

use std::{
    collections::{HashMap, HashSet},
    io::Write as _,
};

use serde_json::{Value, json};

use super::{run::PROBE_PATIENCE, settings::Format};
use crate::{
    catalog::Tool,
    mtdf::Severity,
    toolbox::{Toolbox, ToolboxHandle},
};

pub(crate) async fn run(toolbox: &ToolboxHandle, format: Format) {
    let toolbox = toolbox.settled(PROBE_PATIENCE).await;
    let text = match format {
        Format::Json => format!("{:#}\n", as_json(&toolbox)),
        Format::Text => as_text(&toolbox),
    };
    // A reader that has seen enough is no error.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    let broken: HashSet<_> = (toolbox.problems.iter())
        .filter(|problem| problem.severity == Severity::Error)
        .map(|problem| &problem.file)
        .collect();
    if !broken.is_empty() {
        let _ = writeln!(
            std::io::stderr().lock(),
            "warning: {} tool files have mistakes and are not listed\nhint: ahma_validate shows each mistake in its place",
            broken.len()
        );
    }
}

fn as_json(toolbox: &Toolbox) -> Value {
    let missing = reasons(toolbox);
    let tools: Vec<Value> = (toolbox.catalog.tools())
        .map(|tool| {
            let mut row = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": *tool.input_schema,
                "available": !missing.contains_key(tool.name.as_str()),
                "source": tool.file.as_ref().map(|file| toolbox.directory.join(file).display().to_string()),
            });
            if let Some(reason) = missing.get(tool.name.as_str()) {
                row["unavailable_because"] = (*reason).into();
                row["install_instructions"] = tool.install_instructions.clone().into();
            }
            row
        })
        .collect();
    json!({
        "directory": toolbox.directory.display().to_string(),
        "directory_problem": toolbox.directory_problem,
        "tools": tools,
        "problems": toolbox.problems,
    })
}

fn as_text(toolbox: &Toolbox) -> String {
    let missing = reasons(toolbox);
    let mut text = String::new();
    for tool in toolbox.catalog.tools() {
        text.push_str(&entry(tool, missing.get(tool.name.as_str()).copied()));
    }
    if let Some(problem) = &toolbox.directory_problem {
        text.push_str(&format!(
            "no tool files in {}: {problem}\n",
            toolbox.directory.display()
        ));
    }
    for problem in &toolbox.problems {
        text.push_str(&format!("{problem}\n"));
    }
    text
}

fn entry(tool: &Tool, missing: Option<&str>) -> String {
    let source = tool.file.as_deref().unwrap_or("built in");
    let mut entry = format!("{} ({source})\n    {}\n", tool.name, tool.description);
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    for (name, schema) in tool
        .input_schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let needed = required.is_some_and(|required| required.iter().any(|value| value == name));
        let kind = schema["type"].as_str().unwrap_or("any");
        let described = schema["description"]
            .as_str()
            .map(|text| format!(": {text}"))
            .unwrap_or_default();
        entry.push_str(&format!(
            "    - {name} ({kind}{}){described}\n",
            if needed { ", required" } else { "" }
        ));
    }
    if let Some(reason) = missing {
        entry.push_str(&format!("    not available: {reason}\n"));
        if let Some(instructions) = &tool.install_instructions {
            entry.push_str(&format!("    to install it: {instructions}\n"));
        }
    }
    entry
}

fn reasons(toolbox: &Toolbox) -> HashMap<&str, &str> {
    toolbox
        .unavailable
        .iter()
        .map(|missing| (missing.tool.as_str(), missing.reason.as_str()))
        .collect()
}
