//! Streams resumed after `Last-Event-ID`: no event twice, and not endlessly.
//!
//! Some servers send the event again that the stream is resumed after. Some answer a resume they cannot serve with
//! an empty stream, and rmcp would ask again without end; here a few such answers in a row end it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use tokio::time::Instant;

pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A stream that stayed open this long was a real one, even without an event.
const REAL_STREAM: Duration = Duration::from_secs(2);

/// Number of fruitless resumptions in a row, by event id.
#[derive(Debug, Clone, Default)]
pub(super) struct Resumes(Arc<Mutex<HashMap<String, u32>>>);

impl Resumes {
    /// False once resuming after this event has failed `limit` times.
    pub(super) fn is_worth_it(&self, last_event_id: &str, limit: u32) -> bool {
        let mut fruitless = self.0.lock();
        let worth_it = fruitless.get(last_event_id).is_none_or(|count| *count < limit);
        if !worth_it {
            fruitless.remove(last_event_id);
        }
        worth_it
    }

    /// The events of a stream resumed after `last_event_id`, without that event itself.
    pub(super) fn follow(&self, events: Events, last_event_id: String) -> Events {
        let resumed = Resumed {
            resumes: self.clone(),
            last_event_id,
            opened: Instant::now(),
            is_first: true,
        };
        futures::stream::unfold((events, Some(resumed)), |(mut events, mut resumed)| async move {
            loop {
                let event = events.next().await;
                match resumed
                    .as_mut()
                    .map_or(Resumption::Pass, |resumed| resumed.judge(event.as_ref()))
                {
                    Resumption::Skip => continue,
                    Resumption::Wait => {}
                    Resumption::Pass => resumed = None,
                }
                return Some((event?, (events, resumed)));
            }
        })
        .boxed()
    }
}

struct Resumed {
    resumes: Resumes,
    last_event_id: String,
    opened: Instant,
    is_first: bool,
}

enum Resumption {
    /// The repeated event.
    Skip,
    /// Nothing new yet.
    Wait,
    /// The stream has proved itself, or is over.
    Pass,
}

impl Resumed {
    fn judge(&mut self, event: Option<&Result<Sse, SseError>>) -> Resumption {
        let is_first = std::mem::take(&mut self.is_first);
        match event {
            Some(Ok(event)) if event.id.as_deref() == Some(self.last_event_id.as_str()) => {
                if is_first {
                    Resumption::Skip
                } else {
                    Resumption::Wait
                }
            }
            Some(Ok(event)) if event.data.as_deref().is_none_or(str::is_empty) => Resumption::Wait,
            Some(Ok(_)) => {
                self.resumes.0.lock().remove(&self.last_event_id);
                Resumption::Pass
            }
            Some(Err(_)) | None => {
                if self.opened.elapsed() < REAL_STREAM {
                    *self
                        .resumes
                        .0
                        .lock()
                        .entry(self.last_event_id.clone())
                        .or_default() += 1;
                }
                Resumption::Pass
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(ids: &[&str]) -> Events {
        let events: Vec<_> = ids
            .iter()
            .map(|id| Ok(Sse::default().id(*id).data("x")))
            .collect();
        futures::stream::iter(events).boxed()
    }

    async fn ids(events: Events) -> Vec<String> {
        events.map(|event| event.unwrap().id.unwrap()).collect().await
    }

    #[tokio::test]
    async fn only_the_repeated_event_is_dropped() {
        let cases: [(&[&str], &[&str]); 4] = [
            (&["2", "3", "4"], &["3", "4"]),
            (&["3", "4"], &["3", "4"]),
            (&["3", "2", "4"], &["3", "2", "4"]),
            (&["2"], &[]),
        ];
        for (sent, kept) in cases {
            assert_eq!(
                ids(Resumes::default().follow(events(sent), "2".to_owned())).await,
                kept
            );
        }
    }

    #[tokio::test]
    async fn empty_answers_end_it_and_a_real_one_starts_anew() {
        let resumes = Resumes::default();
        for _ in 0..2 {
            assert!(resumes.is_worth_it("2", 2));
            ids(resumes.follow(events(&["2"]), "2".to_owned())).await;
        }
        assert!(!resumes.is_worth_it("2", 2));
        for sent in [&["2"][..], &["2", "3"], &["2"]] {
            assert!(resumes.is_worth_it("2", 2));
            ids(resumes.follow(events(sent), "2".to_owned())).await;
        }
        assert!(resumes.is_worth_it("2", 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stayed_open_counts_as_a_real_one() {
        let resumes = Resumes::default();
        for (open_for, is_worth_it) in [(REAL_STREAM, true), (Duration::ZERO, false)] {
            let stream = futures::stream::once(async move {
                tokio::time::sleep(open_for).await;
                Ok(Sse::default().id("2").data("x"))
            });
            ids(resumes.follow(stream.boxed(), "2".to_owned())).await;
            assert_eq!(resumes.is_worth_it("2", 1), is_worth_it, "{open_for:?}");
        }
    }
}
