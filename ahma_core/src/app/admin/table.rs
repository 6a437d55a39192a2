//! Answers of the admin API as tables for people.

use std::fmt::Write as _;

use serde_json::Value;

/// Longest cell; what is longer is cut, and whole in JSON.
const MAX_CELL_CHARS: usize = 60;

/// One column: its heading, and the text of a row.
pub(super) type Column = (&'static str, fn(&Value) -> String);

pub(super) const SESSIONS: [Column; 7] = [
    ("SESSION", |row| text(row, "id")),
    ("PRINCIPAL", |row| text(row, "principal")),
    ("CLIENT", |row| text(&row["client"], "name")),
    ("ADDRESS", |row| text(row, "address")),
    ("SINCE", |row| text(row, "since")),
    ("RUNS", |row| text(row, "operations")),
    ("SCOPE", |row| text(row, "scope")),
];

pub(super) const OPERATIONS: [Column; 7] = [
    ("OPERATION", |row| text(row, "id")),
    ("STATUS", |row| text(row, "status")),
    ("PRINCIPAL", |row| text(row, "principal")),
    ("TOOL", |row| text(row, "tool")),
    ("TIME", elapsed),
    ("DONE", |row| {
        row["percent"]
            .as_f64()
            .map_or_else(dash, |percent| format!("{percent:.0} %"))
    }),
    ("COMMAND", |row| text(row, "command")),
];

pub(super) fn render(columns: &[Column], rows: &[Value]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| columns.iter().map(|(_, cell)| shown(&cell(row))).collect())
        .collect();
    let width = |column: usize| {
        let of_rows = cells.iter().map(|row| row[column].chars().count());
        of_rows.chain([columns[column].0.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut table = String::new();
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    for row in std::iter::once(headings).chain(cells) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

fn text(row: &Value, field: &str) -> String {
    match &row[field] {
        Value::Null => dash(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
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

/// A cell on one line, without what a terminal would obey.
fn shown(text: &str) -> String {
    let harmless = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().map(harmless).take(MAX_CELL_CHARS).collect();
    if text.chars().count() > MAX_CELL_CHARS {
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
                   "principal": "ci", "command": "make\u{1b}[2J"}),
            json!({"id": "op_22", "status": "failed", "tool": "x", "duration_ms": 20}),
        ];
        assert_eq!(
            render(&OPERATIONS, &rows),
            "OPERATION  STATUS   PRINCIPAL  TOOL   TIME   DONE  COMMAND\n\
             op_1       running  ci         build  1.2 s  42 %  make [2J\n\
             op_22      failed   -          x      0.0 s  -     -\n"
        );
    }
}
