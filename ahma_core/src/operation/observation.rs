//! One command's output, read by its tool's rules.

use std::{future::pending, sync::Arc};

use tokio::time::{Instant, sleep_until};

use crate::observe::{Observer, Source, StreamEvent, StreamRules};

/// An observer and its clock. Without rules it does nothing, and costs nothing.
#[derive(Debug)]
pub(super) struct Observation {
    observing: Option<Observing>,
}

#[derive(Debug)]
struct Observing {
    observer: Observer,
    started: Instant,
}

impl Observation {
    pub(super) fn new(rules: Option<&Arc<StreamRules>>) -> Self {
        let observing = rules.map(|rules| Observing {
            observer: Observer::new(Arc::clone(rules)),
            started: Instant::now(),
        });
        Self { observing }
    }

    pub(super) fn feed(&mut self, source: Source, bytes: &[u8]) -> Vec<StreamEvent> {
        match &mut self.observing {
            Some(Observing { observer, started }) => observer.feed(source, bytes, started.elapsed()),
            None => Vec::new(),
        }
    }

    /// Waits until the output has been quiet for long enough, and gives what its unfinished line tells. Never returns
    /// if there is none.
    pub(super) async fn quiet(&mut self) -> Vec<StreamEvent> {
        let Some(Observing { observer, started }) = &mut self.observing else {
            return pending().await;
        };
        let Some(at) = observer.next_tick() else {
            return pending().await;
        };
        sleep_until(*started + at).await;
        observer.tick(started.elapsed())
    }

    /// There is no more output.
    pub(super) fn finish(self) -> Vec<StreamEvent> {
        match self.observing {
            Some(Observing { mut observer, .. }) => observer.finish(),
            None => Vec::new(),
        }
    }
}
