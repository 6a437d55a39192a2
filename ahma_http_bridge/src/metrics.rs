//! Counters, and the text a Prometheus server reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Responses by the hundreds of their status.
    responses: [AtomicU64; 6],
    sessions_opened: AtomicU64,
    connections: AtomicU64,
}

/// Current figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) sessions: usize,
    pub(crate) children: usize,
    pub(crate) open_calls: usize,
    pub(crate) queued_operations: usize,
    pub(crate) running_operations: usize,
    pub(crate) connections: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) load_per_cpu: f64,
}

impl Metrics {
    pub(crate) fn response(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).min(5);
        self.responses[class].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session_opened(&self) {
        self.sessions_opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn connections(&self) -> usize {
        usize::try_from(self.connections.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    pub(crate) fn render(&self, now: Gauges, operations: &OperationMetrics) -> String {
        let mut text = operations.render();
        let mut add = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let responses: Vec<_> = (1..=5)
            .map(|class| {
                (
                    format!("{{class=\"{class}xx\"}}"),
                    self.responses[class].load(Ordering::Relaxed).to_string(),
                )
            })
            .collect();
        let one = |value: String| [(String::new(), value)];
        add(
            "ahma_http_responses_total",
            "counter",
            "Responses by class of status.",
            &responses,
        );
        let opened = self.sessions_opened.load(Ordering::Relaxed).to_string();
        add(
            "ahma_sessions_opened_total",
            "counter",
            "Sessions opened so far.",
            &one(opened),
        );
        add(
            "ahma_sessions",
            "gauge",
            "Sessions that are open.",
            &one(now.sessions.to_string()),
        );
        add(
            "ahma_children",
            "gauge",
            "Server processes that run.",
            &one(now.children.to_string()),
        );
        add(
            "ahma_open_calls",
            "gauge",
            "Requests that wait for an answer.",
            &one(now.open_calls.to_string()),
        );
        let open = [
            ("{state=\"queued\"}".to_owned(), now.queued_operations.to_string()),
            (
                "{state=\"running\"}".to_owned(),
                now.running_operations.to_string(),
            ),
        ];
        add(
            "ahma_operations",
            "gauge",
            "Operations that have not ended.",
            &open,
        );
        add(
            "ahma_connections",
            "gauge",
            "Connections that are open.",
            &one(now.connections.to_string()),
        );
        add(
            "ahma_memory_bytes",
            "gauge",
            "Memory of the bridge and everything below it: proportional set size.",
            &one(now.memory_bytes.to_string()),
        );
        add(
            "ahma_load_per_cpu",
            "gauge",
            "Load average per processor.",
            &one(format!("{:.3}", now.load_per_cpu)),
        );
        text
    }
}

/// Series of one counter. Principals may be many; the rest is counted together.
const MAX_SERIES: usize = 1000;
const OTHERS: &str = "other";

/// Upper bounds of the duration histogram, in milliseconds: from a quick look to a long scan.
const DURATION_BOUNDS_MS: [u64; 10] = [
    100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000,
];

/// Ended operations by tool, status and principal, and how long they ran.
#[derive(Debug, Default)]
pub(crate) struct OperationMetrics {
    ended: Mutex<BTreeMap<[Box<str>; 3], u64>>,
    /// One for each bound, and one for what is longer.
    durations: [AtomicU64; DURATION_BOUNDS_MS.len() + 1],
    duration_sum_ms: AtomicU64,
}

impl OperationMetrics {
    pub(crate) fn ended(&self, tool: &str, status: &str, principal: &str, duration_ms: Option<u64>) {
        let mut ended = self.ended.lock();
        let key = [tool, status, principal].map(Into::into);
        let key = match ended.len() < MAX_SERIES || ended.contains_key(&key) {
            true => key,
            false => [OTHERS, status, OTHERS].map(Into::into),
        };
        *ended.entry(key).or_default() += 1;
        drop(ended);
        if let Some(duration) = duration_ms {
            let bucket = DURATION_BOUNDS_MS.partition_point(|bound| *bound < duration);
            self.durations[bucket].fetch_add(1, Ordering::Relaxed);
            self.duration_sum_ms.fetch_add(duration, Ordering::Relaxed);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds for people and plots")]
    fn render(&self) -> String {
        let seconds = |millis: u64| millis as f64 / 1000.0;
        // Writing to a string does not fail.
        let mut text =
            "# HELP ahma_operations_total Operations that ended.\n# TYPE ahma_operations_total counter\n"
                .to_owned();
        for ([tool, status, principal], count) in &*self.ended.lock() {
            let [tool, status, principal] = [tool, status, principal].map(|value| label(value));
            let _ = writeln!(
                text,
                "ahma_operations_total{{tool={tool},status={status},principal={principal}}} {count}"
            );
        }
        const DURATION: &str = "ahma_operation_duration_seconds";
        let _ = writeln!(
            text,
            "# HELP {DURATION} Time that operations ran.\n# TYPE {DURATION} histogram"
        );
        let mut count = 0;
        let bounds = DURATION_BOUNDS_MS.iter().map(|bound| seconds(*bound).to_string());
        for (found, bound) in self.durations.iter().zip(bounds.chain(["+Inf".to_owned()])) {
            count += found.load(Ordering::Relaxed);
            let _ = writeln!(text, "{DURATION}_bucket{{le=\"{bound}\"}} {count}");
        }
        let sum = seconds(self.duration_sum_ms.load(Ordering::Relaxed));
        let _ = writeln!(text, "{DURATION}_sum {sum}\n{DURATION}_count {count}");
        text
    }
}

/// The value of a label, quoted as the text format wants it.
fn label(value: &str) -> String {
    let escaped = value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
