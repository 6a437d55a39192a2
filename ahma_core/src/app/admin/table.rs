//! Answers of the admin API as tables for people.

use ahma_common::words::visible;
use serde_json::Value;

use crate::app::table::aligned;

/// Longest cell; a longer one is cut, but not in JSON.
const MAX_CELL_CHARS: usize = 60;

/// Longest field with a line of its own.
const MAX_FIELD_CHARS: usize = 2_000;

/// One column: its heading, and the text of a row.
pub(super) type Column = (&'static str, fn(&Value) -> String);

pub(super) const SESSIONS: [Column; 7] = [
    ("SESSION", |row| text(row, "id")),
    ("PRINCIPAL", |row| text(row, "principal")),
    ("CLIENT", |row| text(&row["client"], "name")),
    ("ADDRESS", |row| text(row, "address")),
    ("SINCE", |row| moment(row, "since")),
    ("RUNS", |row| text(row, "operations")),
    ("SCOPE", |row| text(row, "scope")),
];

/// Shown where there are workers, before the command.
pub(super) const WORKER: Column = ("WORKER", |row| text(row, "worker"));

pub(super) const OPERATIONS: [Column; 7] = [
    ("OPERATION", |row| text(row, "id")),
    ("STATUS", |row| text(row, "status")),
    ("CLIENT", client),
    ("TOOL", |row| text(row, "tool")),
    ("TIME", elapsed),
    ("DONE", |row| {
        row["percent"]
            .as_f64()
            .map_or_else(dash, |percent| format!("{percent:.0} %"))
    }),
    ("COMMAND", |row| text(row, "command")),
];

pub(super) const HISTORY: [Column; 7] = [
    ("OPERATION", |row| text(row, "id")),
    ("STARTED", |row| moment(row, "created_at")),
    ("STATUS", |row| text(row, "status")),
    ("CLIENT", client),
    ("TOOL", |row| text(row, "tool")),
    ("TIME", |row| {
        let seconds = row["duration_seconds"].as_f64();
        seconds.map_or_else(dash, |seconds| format!("{seconds:.1} s"))
    }),
    ("COMMAND", |row| text(row, "command")),
];

pub(super) const FINDINGS: [Column; 4] = [
    ("SEVERITY", |row| text(row, "severity")),
    ("ID", |row| text(row, "id")),
    ("PLACE", |row| text(row, "location")),
    ("TITLE", |row| text(row, "title")),
];

pub(super) const SERVERS: [Column; 6] = [
    ("PROCESS", |row| text(row, "pid")),
    ("SINCE", |row| moment(row, "started_at")),
    ("VERSION", |row| text(row, "version")),
    ("SANDBOX", |row| text(&row["facts"], "tier")),
    ("TOOLS", |row| count(&row["facts"]["tools"])),
    ("SCOPE", |row| text(row, "scope")),
];

/// A line for each field that is known.
pub(super) fn record(record: &Value) -> String {
    let fields = record.as_object().into_iter().flatten();
    // Samples are for plots.
    let shown_fields = fields.filter(|(name, value)| *name != "usage" && !value.is_null());
    let lines =
        shown_fields.map(|(name, _)| format!("{name:<18} {}\n", shown(&text(record, name), MAX_FIELD_CHARS)));
    lines.collect()
}

/// The lines of an audit trail, the newest last, and the verdict.
pub(super) fn trail(trail: &Value) -> String {
    let lines = trail["lines"].as_array().into_iter().flatten();
    let mut said: String = lines
        .map(|line| shown(&line.to_string(), usize::MAX) + "\n")
        .collect();
    said.push_str(&match trail["trouble"].as_str() {
        None => "the trail is intact\n".to_owned(),
        Some(trouble) => format!("the trail is broken: {trouble}\n"),
    });
    said
}

fn count(list: &Value) -> String {
    list.as_array().map_or_else(dash, |list| list.len().to_string())
}

pub(super) fn render(columns: &[Column], rows: &[Value]) -> String {
    let head: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let rows = rows.iter();
    let rows = rows.map(|row| {
        columns
            .iter()
            .map(|(_, cell)| shown(&cell(row), MAX_CELL_CHARS))
            .collect()
    });
    aligned(&head, &rows.collect::<Vec<_>>())
}

fn text(row: &Value, field: &str) -> String {
    match &row[field] {
        Value::Null => dash(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A moment to the second.
fn moment(row: &Value, field: &str) -> String {
    match row[field].as_str().and_then(|moment| moment.split_once('.')) {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text(row, field),
    }
}

/// The identity behind an operation and its program, as far as they are known.
fn client(row: &Value) -> String {
    let names = [row["principal"].as_str(), row["program"].as_str()];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    match names.as_slice() {
        [] => dash(),
        names => names.join(" · "),
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn elapsed(row: &Value) -> String {
    let millis = row["elapsed_ms"].as_u64().or_else(|| row["duration_ms"].as_u64());
    millis.map_or_else(dash, |millis| {
        format!("{}.{} s", millis / 1000, millis % 1000 / 100)
    })
}

/// Text on one line, without control characters.
fn shown(text: &str, max_chars: usize) -> String {
    let mut shown: String = visible(text).chars().take(max_chars).collect();
    if text.chars().count() > max_chars {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_and_nothing_reaches_the_terminal() {
        let rows = [
            json!({"id": "op_1", "status": "running", "tool": "build", "elapsed_ms": 1250, "percent": 41.6,
                   "principal": "ci", "program": "editor", "command": "make\u{1b}[2J"}),
            json!({"id": "op_22", "status": "failed", "tool": "x", "duration_ms": 20}),
        ];
        assert_eq!(
            render(&OPERATIONS, &rows),
            "OPERATION  STATUS   CLIENT       TOOL   TIME   DONE  COMMAND\n\
             op_1       running  ci · editor  build  1.2 s  42 %  make\u{fffd}[2J\n\
             op_22      failed   -            x      0.0 s  -     -\n"
        );
    }
}
