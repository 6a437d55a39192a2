//! Operations as JSON, for programs: rows of the history, and what can be read of one in pages.

use ahma_common::contract::OutputPlace;
use serde_json::{Map, Value, json};

use super::rows::{FindingRow, OperationRow};
use crate::{
    jail::ExitStatus,
    operation::{Operation, OutputQuery, PageError, PageStart, rfc3339},
};

/// Lines of one answer; a page has a limit in bytes, too.
const MAX_LINES: u64 = 10_000;

/// Unknown fields are left out.
pub(crate) fn operation(row: &OperationRow) -> Value {
    fields(row)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The parts of an operation that are known, in the order in which a person reads them.
pub(crate) fn fields(row: &OperationRow) -> Vec<(&'static str, Value)> {
    let arguments = row.arguments.as_deref();
    // Long ones are cut and no JSON any more.
    let arguments = arguments.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    let mut fields = vec![
        ("id", json!(row.id)),
        ("status", json!(row.state)),
        ("reason", json!(row.reason)),
        ("exit_code", json!(row.exit.and_then(ExitStatus::code))),
        ("signal", json!(row.exit.and_then(ExitStatus::signal))),
        ("tool", json!(row.tool)),
        ("command", json!(row.command)),
        ("arguments", json!(arguments)),
        ("directory", json!(row.directory)),
        ("scope", json!(row.owner.scope)),
        ("principal", json!(row.owner.principal.name())),
        ("program", json!(row.program)),
        ("session", json!(row.session)),
        ("server", json!(row.server)),
        ("created_at", json!(rfc3339(row.created_at))),
        ("started_at", json!(row.started_at.map(rfc3339))),
        ("ended_at", json!(row.ended_at.map(rfc3339))),
        ("collected_at", json!(row.collected_at.map(rfc3339))),
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
        ("found_at".to_owned(), json!(rfc3339(row.found_at))),
    ]);
    if let Ok(Value::Object(finding)) = serde_json::to_value(&row.finding) {
        fields.extend(finding);
    }
    Value::Object(fields)
}

/// A part of an output.
pub(crate) async fn output(operation: &Operation, place: OutputPlace) -> Result<Value, PageError> {
    let max_lines = place.lines.unwrap_or(MAX_LINES).min(MAX_LINES);
    let line = place.from_line.map(|line| PageStart::Line(line.max(1)));
    let query = match line.or(place.from_byte.map(PageStart::Byte)) {
        Some(from) => OutputQuery::Range { from, max_lines },
        None => OutputQuery::Tail { lines: max_lines },
    };
    let has_ended = operation.ended().is_some();
    let page = operation.output().read(query).await?;
    Ok(json!({
        "id": operation.id(),
        "text": page.text,
        "first_line": page.first_line,
        "lines": page.lines,
        "next_byte": page.next_byte,
        "total_lines": page.total_lines,
        "total_bytes": page.total_bytes,
        "has_ended": has_ended,
    }))
}

/// A page of findings, from this index on.
pub(crate) fn findings(operation: &Operation, from: usize) -> Value {
    let page = operation.findings(from, operation.finding_budget());
    json!({
        "id": operation.id(),
        "findings": page.findings,
        "next": page.next,
        "kept": page.kept,
        "counts": page.counts,
    })
}
