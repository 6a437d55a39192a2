//! Rows of the history as text for a terminal.

use std::time::{Duration, SystemTime};

use ahma_common::words::visible;

use crate::{
    app::table::aligned,
    history::{FindingRow, OperationRow, document},
    operation::rfc3339,
};

pub(super) fn operations(rows: &[OperationRow]) -> String {
    let cells = |row: &OperationRow| {
        vec![
            row.id.to_string(),
            short_time(row.created_at),
            row.state.to_string(),
            took(row.duration),
            visible(client(row)),
            visible(&row.tool),
            visible(&row.command),
        ]
    };
    let head = [
        "ID",
        "STARTED (UTC)",
        "STATUS",
        "TOOK",
        "CLIENT",
        "TOOL",
        "COMMAND",
    ];
    aligned(&head, &rows.iter().map(cells).collect::<Vec<_>>())
}

pub(super) fn findings(rows: &[FindingRow]) -> String {
    let cells = |row: &FindingRow| {
        vec![
            row.finding.severity.as_str().to_owned(),
            row.operation.to_string(),
            short_time(row.found_at),
            visible(&row.tool),
            visible(row.finding.location.as_deref().unwrap_or("-")),
            visible(&row.finding.title),
        ]
    };
    let head = [
        "SEVERITY",
        "OPERATION",
        "STARTED (UTC)",
        "TOOL",
        "LOCATION",
        "TITLE",
    ];
    aligned(&head, &rows.iter().map(cells).collect::<Vec<_>>())
}

/// Everything known of one, a line each.
pub(super) fn operation(row: &OperationRow) -> String {
    let line = |(name, value): (&str, serde_json::Value)| {
        let text = match (name, &value) {
            ("finding_counts", _) => return String::new(),
            (_, serde_json::Value::String(text)) => text.clone(),
            _ => value.to_string(),
        };
        format!("{name:<18} {}\n", visible(&text))
    };
    let lines: String = document::fields(row).into_iter().map(line).collect();
    match row.finding_counts.in_words() {
        none if none.is_empty() => lines,
        counts => lines + &format!("{:<18} {counts}\n", "findings"),
    }
}

fn client(row: &OperationRow) -> &str {
    let principal = row.owner.principal.name();
    principal.or(row.program.as_deref()).unwrap_or("-")
}

/// To the second, without what is the same for all.
fn short_time(moment: SystemTime) -> String {
    rfc3339(moment)
        .chars()
        .take(19)
        .collect::<String>()
        .replace('T', " ")
}

fn took(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1}s", duration.as_secs_f64()),
        seconds @ 60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}
