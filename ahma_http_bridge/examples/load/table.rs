//! The results: a line for people, a row for programs, in the form that the benchmark of `ahma_core` has.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::percentile;

pub(crate) struct Table {
    /// Subject of every row.
    prefix: String,
    pub(crate) rows: BTreeMap<String, Value>,
}

impl Table {
    pub(crate) fn new(prefix: String) -> Self {
        Self {
            prefix,
            rows: BTreeMap::new(),
        }
    }

    pub(crate) fn times(&mut self, name: &str, mut times: Vec<Duration>) {
        let [p50, p95, p99] = [50, 95, 99].map(|percent| percentile(&mut times, percent));
        println!("{name:<34} p50 {p50:>7.3} ms   p95 {p95:>7.3} ms   p99 {p99:>7.3} ms");
        self.add(name, json!({ "p50_ms": p50, "p95_ms": p95, "p99_ms": p99 }));
    }

    pub(crate) fn rate(&mut self, name: &str, per_second: f64, unit: &str) {
        println!("{name:<34} {per_second:>9.0} {unit}/s");
        self.add(name, json!({ "per_second": per_second }));
    }

    pub(crate) fn figure(&mut self, name: &str, value: u64, unit: &str) {
        println!("{name:<34} {value:>9} {unit}");
        self.add(name, json!({ "value": value, "unit": unit }));
    }

    fn add(&mut self, name: &str, row: Value) {
        self.rows.insert(format!("{}: {name}", self.prefix), row);
    }
}
