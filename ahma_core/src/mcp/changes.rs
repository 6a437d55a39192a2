//! Waiting for news of several operations.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

use crate::operation::Operation;

/// Output and the end of a short command come together; waiting this long saves a message that nobody needs.
const SETTLING: Duration = Duration::from_millis(10);

/// Tells that something about any of the operations is new. Whoever asks holds the operations, so no change is the last.
#[derive(Debug)]
pub(super) struct Changes {
    of_each: Vec<watch::Receiver<u64>>,
}

impl Changes {
    pub(super) fn of(operations: &[Operation]) -> Self {
        Self {
            of_each: operations.iter().map(Operation::watch).collect(),
        }
    }

    /// Waits for news, and then until `not_before`, which is asked again whenever there are more.
    pub(super) async fn next(&mut self, not_before: impl Fn() -> Instant) {
        self.any().await;
        loop {
            tokio::time::sleep(SETTLING).await;
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(not_before()) => break,
                () = self.any() => {}
            }
        }
        for change in &mut self.of_each {
            change.mark_unchanged();
        }
    }

    async fn any(&mut self) {
        if self.of_each.is_empty() {
            return std::future::pending().await;
        }
        let any = self.of_each.iter_mut().map(|change| Box::pin(change.changed()));
        let _ = futures::future::select_all(any).await;
    }
}
