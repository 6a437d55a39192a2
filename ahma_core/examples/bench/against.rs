//! Compares the rows of this run with those of another, kept by `--json`.
//!
//! Two runs of a machine that others use differ by themselves; the floor's row shows by how much.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

/// Figures of a row, with what is shown behind its name.
const FIGURES: [(&str, &str); 5] = [
    ("p50_ms", "p50"),
    ("p95_ms", "p95"),
    ("p99_ms", "p99"),
    ("per_second", "/s"),
    ("value", ""),
];

pub(crate) fn comparison(rows: &BTreeMap<String, Value>, file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("the rows of another run");
    let other: BTreeMap<String, Value> = serde_json::from_str(&text).expect("rows that --json wrote");
    let mut lines = format!("\n{:68} {:>10} {:>10} {:>7}\n", "", "then", "now", "ratio");
    for (name, row) in rows {
        for (figure, shown) in FIGURES {
            let then = other.get(name).and_then(|then| then[figure].as_f64());
            if let (Some(now), Some(then)) = (row[figure].as_f64(), then) {
                lines += &format!(
                    "{:68} {then:10.2} {now:10.2} {:7.2}\n",
                    format!("{name} {shown}"),
                    now / then
                );
            }
        }
    }
    lines
}
