//! Counters, and the text a Prometheus server reads.

use std::collections::BTreeMap;
use std::fmt::Display;
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
        text.family(
            "ahma_http_responses_total",
            "counter",
            "Responses by class of status.",
        );
        for (class, count) in self.responses.iter().enumerate().skip(1) {
            let count = count.load(Ordering::Relaxed);
            text.sample(
                "ahma_http_responses_total",
                &format!("{{class=\"{class}xx\"}}"),
                count,
            );
        }
        let opened = self.sessions_opened.load(Ordering::Relaxed);
        text.family("ahma_sessions_opened_total", "counter", "Sessions opened so far.");
        text.sample("ahma_sessions_opened_total", "", opened);
        text.family("ahma_operations", "gauge", "Operations that have not ended.");
        text.sample("ahma_operations", "{state=\"queued\"}", now.queued_operations);
        text.sample("ahma_operations", "{state=\"running\"}", now.running_operations);
        text.gauge("ahma_sessions", "Sessions that are open.", now.sessions);
        text.gauge("ahma_children", "Server processes that run.", now.children);
        text.gauge(
            "ahma_open_calls",
            "Requests that wait for an answer.",
            now.open_calls,
        );
        text.gauge("ahma_connections", "Connections that are open.", now.connections);
        let memory = "Memory of the bridge and everything below it: proportional set size.";
        text.gauge("ahma_memory_bytes", memory, now.memory_bytes);
        let load = format!("{:.3}", now.load_per_cpu);
        text.gauge("ahma_load_per_cpu", "Load average per processor.", load);
        text.0
    }
}

/// Text in the format of Prometheus.
struct Exposition(String);

impl Exposition {
    /// Describes the samples that follow.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0 += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        self.0 += &format!("{name}{labels} {value}\n");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
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
    fn render(&self) -> Exposition {
        const DURATION: &str = "ahma_operation_duration_seconds";

        let seconds = |millis: u64| millis as f64 / 1000.0;
        let mut text = Exposition(String::new());
        text.family("ahma_operations_total", "counter", "Operations that ended.");
        for ([tool, status, principal], count) in &*self.ended.lock() {
            let [tool, status, principal] = [tool, status, principal].map(|value| label(value));
            let labels = format!("{{tool={tool},status={status},principal={principal}}}");
            text.sample("ahma_operations_total", &labels, count);
        }
        text.family(DURATION, "histogram", "Time that operations ran.");
        let mut count = 0;
        let bounds = DURATION_BOUNDS_MS.iter().map(|bound| seconds(*bound).to_string());
        for (found, bound) in self.durations.iter().zip(bounds.chain(["+Inf".to_owned()])) {
            count += found.load(Ordering::Relaxed);
            text.sample(DURATION, &format!("_bucket{{le=\"{bound}\"}}"), count);
        }
        text.sample(
            DURATION,
            "_sum",
            seconds(self.duration_sum_ms.load(Ordering::Relaxed)),
        );
        text.sample(DURATION, "_count", count);
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
