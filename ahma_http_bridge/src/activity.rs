//! Uses of a session or a connection, and the time since the last one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

#[derive(Debug)]
pub(crate) struct Uses {
    open: AtomicUsize,
    last: Mutex<Instant>,
}

impl Default for Uses {
    fn default() -> Self {
        Self {
            open: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        }
    }
}

impl Uses {
    /// Time since the last use; zero while in use.
    pub(crate) fn idle_for(&self) -> Duration {
        if self.open.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.last.lock().elapsed()
    }
}

/// A request or an open stream of a session.
#[derive(Debug)]
pub(crate) struct Activity(Arc<Uses>);

impl Activity {
    pub(crate) fn begin(uses: &Arc<Uses>) -> Self {
        uses.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(uses))
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        *self.0.last.lock() = Instant::now();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
