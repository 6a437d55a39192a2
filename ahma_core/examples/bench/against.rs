//! Compares the rows of this run with those of another, kept by `--json`.
//!
//! Two runs of a machine that others use differ by themselves; the floor's row shows by how much.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

/// The figure of a row that is compared.
const FIGURES: [&str; 3] = ["p50_ms", "per_second", "value"];

pub(crate) fn comparison(rows: &BTreeMap<String, Value>, file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("the rows of another run");
    let other: BTreeMap<String, Value> = serde_json::from_str(&text).expect("rows that --json wrote");
    let figure = |row: &Value| FIGURES.iter().find_map(|name| row[*name].as_f64());
    let mut lines = format!("\n{:64} {:>10} {:>10} {:>7}\n", "", "then", "now", "ratio");
    for (name, row) in rows {
        let then = other.get(name).and_then(figure);
        if let (Some(now), Some(then)) = (figure(row), then) {
            lines += &format!("{name:64} {then:10.2} {now:10.2} {:7.2}\n", now / then);
        }
    }
    lines
}
