//! One command's output, read by its tool's rules.
//!
//! Long texts are read off the runtime, whose one thread serves every client: a report of many megabytes takes seconds.

use std::{future::pending, panic::resume_unwind, sync::Arc};

use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

use crate::observe::{Digest, Observer, RunContext, StreamEvent, StreamName, StreamRules};

/// Longer texts are read on a blocking thread. Shorter ones take about as long as the way there and back.
const LONG_BYTES: usize = 256 << 10;

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
    pub(super) fn new(rules: Option<&Arc<StreamRules>>, run: RunContext) -> Self {
        let observing = rules.map(|rules| Observing {
            observer: Observer::for_run(Arc::clone(rules), run),
            started: Instant::now(),
        });
        Self { observing }
    }

    /// Takes in output. Must not be dropped half-way, and neither may [`tick`](Self::tick): the observer may be on another thread.
    pub(super) async fn feed(&mut self, source: StreamName, bytes: &[u8]) -> Vec<StreamEvent> {
        let Some(Observing { observer, started }) = &mut self.observing else {
            return Vec::new();
        };
        let now = started.elapsed();
        if observer.held_bytes() + bytes.len() <= LONG_BYTES {
            return observer.feed(source, bytes, now);
        }
        let bytes = bytes.to_vec();
        self.on_blocking_thread(move |observer| observer.feed(source, &bytes, now))
            .await
    }

    /// Waits until the output has been quiet for long enough for [`tick`](Self::tick). Never returns if it has no
    /// unfinished line.
    pub(super) async fn quiet(&self) {
        let Some(Observing { observer, started }) = &self.observing else {
            return pending().await;
        };
        let Some(at) = observer.next_tick() else {
            return pending().await;
        };
        sleep_until(*started + at).await;
    }

    /// Events of the unfinished line.
    pub(super) async fn tick(&mut self) -> Vec<StreamEvent> {
        let Some(Observing { observer, started }) = &mut self.observing else {
            return Vec::new();
        };
        let now = started.elapsed();
        if observer.held_bytes() <= LONG_BYTES {
            return observer.tick(now);
        }
        self.on_blocking_thread(move |observer| observer.tick(now)).await
    }

    /// There is no more output.
    pub(super) async fn finish(&mut self) -> Vec<StreamEvent> {
        match &mut self.observing {
            Some(Observing { observer, .. }) if observer.held_bytes() <= LONG_BYTES => observer.finish(),
            Some(_) => self.on_blocking_thread(Observer::finish).await,
            None => Vec::new(),
        }
    }

    /// The part of the output that is worth showing.
    pub(super) fn into_digest(self) -> Option<Digest> {
        self.observing.map(|observing| observing.observer.into_digest())
    }

    async fn on_blocking_thread(
        &mut self,
        work: impl FnOnce(&mut Observer) -> Vec<StreamEvent> + Send + 'static,
    ) -> Vec<StreamEvent> {
        let Some(mut observing) = self.observing.take() else {
            return Vec::new();
        };
        let working = spawn_blocking(move || {
            let events = work(&mut observing.observer);
            (observing, events)
        });
        match working.await {
            Ok((observing, events)) => {
                self.observing = Some(observing);
                events
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime ends, and everything with it.
                Err(_cancelled) => Vec::new(),
            },
        }
    }
}

#[cfg(test)]
#[path = "observation_tests.rs"]
mod tests;
