//! Rows of the history as JSON.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    history::{FindingRow, OperationRow},
    jail::ExitStatus,
};

pub(super) fn time(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    let whole = time.replace_millisecond(time.millisecond()).unwrap_or(time);
    whole.format(&Rfc3339).unwrap_or_default()
}

/// What is unknown is left out.
pub(super) fn operation(row: &OperationRow) -> Value {
    let (exit_code, signal) = match row.exit {
        Some(ExitStatus::Code(code)) => (Some(code), None),
        Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let arguments = row.arguments.as_deref();
    // Long ones are cut and no JSON any more.
    let arguments = arguments.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    let fields = json!({
        "id": row.id,
        "tool": row.tool,
        "command": row.command,
        "arguments": arguments,
        "status": row.state,
        "reason": row.reason,
        "exit_code": exit_code,
        "signal": signal,
        "principal": row.owner.principal.name(),
        "program": row.program,
        "session": row.session,
        "scope": row.owner.scope,
        "directory": row.directory,
        "server": row.server,
        "created_at": time(row.created_at),
        "started_at": row.started_at.map(time),
        "ended_at": row.ended_at.map(time),
        "collected_at": row.collected_at.map(time),
        "duration_seconds": row.duration.as_secs_f64(),
        "cpu_seconds": row.cpu.map(|cpu| cpu.as_secs_f64()),
        "peak_memory_bytes": row.peak_memory_bytes,
        "output_bytes": row.output_bytes,
        "output_lines": row.output_lines,
        "percent": row.reached.percent,
        "phase": row.reached.phase,
        "finding_counts": row.finding_counts,
    });
    match fields {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

pub(super) fn finding(row: &FindingRow) -> Value {
    let mut fields = Map::from_iter([
        ("operation".to_owned(), json!(row.operation)),
        ("tool".to_owned(), json!(row.tool)),
        ("found_at".to_owned(), json!(time(row.found_at))),
    ]);
    if let Ok(Value::Object(finding)) = serde_json::to_value(&row.finding) {
        fields.extend(finding);
    }
    Value::Object(fields)
}
