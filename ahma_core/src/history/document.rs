//! Rows of the history as JSON, for programs.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::rows::{FindingRow, OperationRow};
use crate::jail::ExitStatus;

pub(crate) fn time(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    let whole = time.replace_millisecond(time.millisecond()).unwrap_or(time);
    whole.format(&Rfc3339).unwrap_or_default()
}

/// What is unknown is left out.
pub(crate) fn operation(row: &OperationRow) -> Value {
    fields(row)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The parts of an operation that are known, in the order in which a person reads them.
pub(crate) fn fields(row: &OperationRow) -> Vec<(&'static str, Value)> {
    let (exit_code, signal) = match row.exit {
        Some(ExitStatus::Code(code)) => (Some(code), None),
        Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let arguments = row.arguments.as_deref();
    // Long ones are cut and no JSON any more.
    let arguments = arguments.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    let mut fields = vec![
        ("id", json!(row.id)),
        ("status", json!(row.state)),
        ("reason", json!(row.reason)),
        ("exit_code", json!(exit_code)),
        ("signal", json!(signal)),
        ("tool", json!(row.tool)),
        ("command", json!(row.command)),
        ("arguments", json!(arguments)),
        ("directory", json!(row.directory)),
        ("scope", json!(row.owner.scope)),
        ("principal", json!(row.owner.principal.name())),
        ("program", json!(row.program)),
        ("session", json!(row.session)),
        ("server", json!(row.server)),
        ("created_at", json!(time(row.created_at))),
        ("started_at", json!(row.started_at.map(time))),
        ("ended_at", json!(row.ended_at.map(time))),
        ("collected_at", json!(row.collected_at.map(time))),
        ("duration_seconds", json!(row.duration.as_secs_f64())),
        ("cpu_seconds", json!(row.cpu.map(|cpu| cpu.as_secs_f64()))),
        ("peak_memory_bytes", json!(row.peak_memory_bytes)),
        ("output_bytes", json!(row.output_bytes)),
        ("output_lines", json!(row.output_lines)),
        ("percent", json!(row.reached.percent)),
        ("phase", json!(row.reached.phase)),
        ("finding_counts", json!(row.finding_counts)),
    ];
    fields.retain(|(_, value)| !value.is_null());
    fields
}

pub(crate) fn finding(row: &FindingRow) -> Value {
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
