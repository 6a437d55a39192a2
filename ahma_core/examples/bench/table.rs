//! The results: a line for people, a row for programs.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Table {
    pub(crate) text: String,
    pub(crate) rows: BTreeMap<String, Value>,
}

impl Table {
    pub(crate) fn times(&mut self, name: &str, times: &[Duration], floor: Option<&[Duration]>) {
        let [p50, p95, p99] = percentiles(times);
        let ratios = floor.map(|floor| [p50, p95, p99].map(|time| time / percentiles(floor)[0]));
        let shown = ratios.map_or(String::new(), |[p50, p95, p99]| {
            format!("{p50:.2} / {p95:.2} / {p99:.2} x floor")
        });
        self.text += &format!("{name:58} p50 {p50:7.3} ms  p95 {p95:7.3}  p99 {p99:7.3}  {shown}\n");
        self.rows.insert(
            name.into(),
            json!({"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "ratios": ratios}),
        );
    }

    pub(crate) fn rate(&mut self, name: &str, rate: f64, floor: Option<f64>) {
        let ratio = floor.map(|floor| rate / floor);
        let shown = ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x floor"));
        self.text += &format!("{name:58} {rate:11.0} /s {:26}{shown}\n", "");
        self.rows
            .insert(name.into(), json!({"per_second": rate, "ratio": ratio}));
    }

    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &str) {
        self.text += &format!("{name:58} {value:11.2} {unit}\n");
        self.rows
            .insert(name.into(), json!({"value": value, "unit": unit}));
    }
}

fn percentiles(times: &[Duration]) -> [f64; 3] {
    let mut sorted = times.to_vec();
    sorted.sort();
    [0.50, 0.95, 0.99]
        .map(|share| sorted[((sorted.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0)
}
