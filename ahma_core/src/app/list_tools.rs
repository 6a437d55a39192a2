//! `--mode list-tools`: the tools for clients, and those that are not available.

use std::collections::HashSet;

use ahma_common::words::counted;
use serde_json::{Map, Value, json};

use super::{
    exit::{Failure, notice, print},
    run::PROBE_TIMEOUT,
    settings::Format,
};
use crate::{
    mcp,
    mtdf::{META_PARAMETERS, ProblemSeverity},
    toolbox::{Toolbox, ToolboxHandle, Unavailable},
};

pub(crate) async fn run(toolbox: &ToolboxHandle, format: Format) -> Result<(), Failure> {
    let toolbox = toolbox.settled(PROBE_TIMEOUT).await;
    let text = match format {
        Format::Json => format!("{:#}\n", as_json(&toolbox)),
        Format::Text => as_text(&toolbox),
        Format::Cost => as_cost(&mcp::costs(&toolbox)),
    };
    print(text)?;
    let broken: HashSet<_> = (toolbox.problems.iter())
        .filter(|problem| problem.severity == ProblemSeverity::Error)
        .map(|problem| &problem.file)
        .collect();
    if !broken.is_empty() {
        let files = counted(broken.len(), "tool file");
        notice(format_args!("warning: {files} left out because of mistakes"));
        notice("hint: ahma_mcp doctor shows each mistake and its place");
    }
    Ok(())
}

/// A tool of a file, or one that comes with the server.
struct Row<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Map<String, Value>,
    /// None for a tool that comes with the server.
    file: Option<&'a str>,
    missing: Option<&'a Unavailable>,
}

/// In the order of their names.
fn rows<'a>(toolbox: &'a Toolbox, builtin: &'a [mcp::BuiltinTool]) -> Vec<Row<'a>> {
    let local = toolbox.catalog.tools().map(|tool| Row {
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.input_schema,
        file: tool.file.as_deref(),
        missing: toolbox.unavailable(&tool.name),
    });
    let builtin = builtin.iter().map(|tool| Row {
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.input_schema,
        file: None,
        missing: None,
    });
    let mut rows: Vec<_> = local.chain(builtin).collect();
    rows.sort_by_key(|row| row.name);
    rows
}

fn as_json(toolbox: &Toolbox) -> Value {
    let tools: Vec<Value> = rows(toolbox, &mcp::builtin_tools())
        .iter()
        .map(|tool| {
            let mut row = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "available": tool.missing.is_none(),
                "source": tool.file.map(|file| toolbox.directory.join(file).display().to_string()),
            });
            if let Some(missing) = &tool.missing {
                row["unavailable_because"] = missing.reason.as_str().into();
                row["install_instructions"] = missing.install_instructions.as_deref().into();
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

/// The most expensive first.
fn as_cost(costs: &[mcp::ToolCost]) -> String {
    let line = |bytes: usize, name: &str| {
        format!(
            "{bytes:>7} bytes {:>6} tokens  {name}\n",
            bytes / mcp::ToolCost::BYTES_PER_TOKEN
        )
    };
    let mut sorted: Vec<_> = costs.iter().collect();
    sorted.sort_by_key(|cost| std::cmp::Reverse(cost.bytes));
    let lines: String = sorted.iter().map(|cost| line(cost.bytes, &cost.name)).collect();
    let total = costs.iter().map(|cost| cost.bytes).sum();
    format!(
        "{lines}{}",
        line(total, &format!("in all, {}", counted(costs.len(), "tool")))
    )
}

fn as_text(toolbox: &Toolbox) -> String {
    let mut text: String = rows(toolbox, &mcp::builtin_tools()).iter().map(entry).collect();
    text.push_str(&format!(
        "\nevery tool that runs a command also takes {}\n",
        META_PARAMETERS.join(", ")
    ));
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

fn entry(tool: &Row<'_>) -> String {
    let source = tool.file.unwrap_or("built in");
    let mut entry = format!("{} ({source})\n    {}\n", tool.name, tool.description);
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let is_own = |name: &str| tool.file.is_none() || !META_PARAMETERS.contains(&name);
    for (name, schema) in properties.into_iter().flatten().filter(|(name, _)| is_own(name)) {
        let needed = required.is_some_and(|required| required.iter().any(|value| value == name));
        let kind = schema["type"].as_str().unwrap_or("any");
        let required = if needed { ", required" } else { "" };
        let description = schema["description"].as_str().map(|text| format!(": {text}"));
        let description = description.unwrap_or_default();
        entry.push_str(&format!("    - {name} ({kind}{required}){description}\n"));
    }
    if let Some(missing) = &tool.missing {
        entry.push_str(&format!("    not available: {}\n", missing.reason));
        if let Some(instructions) = &missing.install_instructions {
            entry.push_str(&format!("    hint: {instructions}\n"));
        }
    }
    entry
}
