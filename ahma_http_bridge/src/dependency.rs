//! Something outside that the backends need, as the program that starts the bridge describes it.

use std::fmt;

/// A service without which no request can be answered. Both methods answer at once.
pub trait Dependency: fmt::Debug + Send + Sync {
    /// Reason why clients should go to another listener, for `/healthz`.
    fn obstacle(&self) -> Option<&'static str>;

    /// Series for `/metrics`, in the text format of Prometheus.
    fn metrics(&self) -> String;
}
