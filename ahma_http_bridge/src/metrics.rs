//! Counters, and the text a Prometheus server reads.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

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

    pub(crate) fn render(&self, now: Gauges) -> String {
        let mut text = String::new();
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
        add(
            "ahma_connections",
            "gauge",
            "Connections that are open.",
            &one(now.connections.to_string()),
        );
        add(
            "ahma_memory_bytes",
            "gauge",
            "Memory of bridge and children.",
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
