//! The list, for people or for programs.
//!
//! Names and descriptions come from a remote server: control characters must never reach the terminal.

use std::io::{self, Write};

use ahma_common::words::{counted, visible};
use ahma_http_mcp_client::Inspection;
use serde_json::{Map, Value, json};

use crate::args::Format;

pub(crate) fn print(out: &mut impl Write, inspection: &Inspection, format: Format) -> io::Result<()> {
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &as_json(inspection))?;
            writeln!(out)
        }
        Format::Text => text(out, inspection),
    }
}

fn as_json(inspection: &Inspection) -> Value {
    let tools = inspection.tools.iter().map(|tool| {
        let mut entry = json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": *tool.input_schema,
        });
        if let Some(schema) = &tool.output_schema {
            entry["output"] = json!(**schema);
        }
        if let Some(annotations) = &tool.annotations {
            entry["annotations"] = json!(annotations);
        }
        entry
    });
    json!({
        "server": inspection.server.as_ref().and_then(|server| server.server_info.as_ref()),
        "protocol": inspection.report.protocol,
        "transport": inspection.report.step.to_string(),
        "tools": tools.collect::<Vec<_>>(),
    })
}

fn text(out: &mut impl Write, inspection: &Inspection) -> io::Result<()> {
    let name = inspection
        .server
        .as_ref()
        .and_then(|server| server.server_info.as_ref());
    let name = name.map_or_else(
        || "unnamed server".to_owned(),
        |info| format!("{} {}", info.name, info.version),
    );
    let count = counted(inspection.tools.len(), "tool");
    let (transport, protocol) = (inspection.report.step, &inspection.report.protocol);
    writeln!(
        out,
        "{}: {count} ({transport}, protocol {})",
        visible(&name),
        visible(protocol)
    )?;
    for tool in &inspection.tools {
        writeln!(out, "\n{}", visible(&tool.name))?;
        for line in tool.description.as_deref().unwrap_or_default().lines() {
            writeln!(out, "  {}", visible(line.trim_end()))?;
        }
        parameters(out, &tool.input_schema)?;
    }
    Ok(())
}

fn parameters(out: &mut impl Write, schema: &Map<String, Value>) -> io::Result<()> {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Ok(());
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, property) in properties {
        let kind = property.get("type").map_or_else(|| "any".to_owned(), kind_of);
        let need = if required.contains(&name.as_str()) {
            ", required"
        } else {
            ""
        };
        let description = property
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let description = description.lines().next().unwrap_or_default();
        let line = format!(
            "    {} ({}{need}) {}",
            visible(name),
            visible(&kind),
            visible(description)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn kind_of(kind: &Value) -> String {
    match kind {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("|"),
        _ => "any".to_owned(),
    }
}
