//! Whether anybody uses a session, and since when nobody does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    /// Zero while somebody uses it.
    pub(crate) fn idle_for(&self) -> Duration {
        if self.open.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
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
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
