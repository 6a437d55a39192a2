//! Streams that go on after `Last-Event-ID`: nothing twice, and not for ever.
//!
//! Some servers send the event again that the stream is resumed after. Some answer a resume they cannot serve with
//! an empty stream, and rmcp would ask again without end; here a few such answers in a row end it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A stream that stayed open this long was a real one, even if nothing happened on it.
const REAL_STREAM: Duration = Duration::from_secs(2);

/// How often each event id was asked for in vain, in a row.
#[derive(Debug, Clone, Default)]
pub(super) struct Resumes(Arc<Mutex<HashMap<String, u32>>>);

impl Resumes {
    /// Whether one more resume after this event may bring something.
    pub(super) fn is_worth_it(&self, last_event_id: &str, limit: u32) -> bool {
        let mut fruitless = self.lock();
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
                    .map_or(Verdict::Pass, |resumed| resumed.judge(event.as_ref()))
                {
                    Verdict::Skip => continue,
                    Verdict::Wait => {}
                    Verdict::Pass => resumed = None,
                }
                return Some((event?, (events, resumed)));
            }
        })
        .boxed()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

struct Resumed {
    resumes: Resumes,
    last_event_id: String,
    opened: Instant,
    is_first: bool,
}

enum Verdict {
    /// The repeated event.
    Skip,
    /// Nothing new yet.
    Wait,
    /// The stream has proved itself, or is over.
    Pass,
}

impl Resumed {
    fn judge(&mut self, event: Option<&Result<Sse, SseError>>) -> Verdict {
        let is_first = std::mem::take(&mut self.is_first);
        match event {
            Some(Ok(event)) if event.id.as_deref() == Some(self.last_event_id.as_str()) => {
                if is_first {
                    Verdict::Skip
                } else {
                    Verdict::Wait
                }
            }
            Some(Ok(event)) if event.data.as_deref().is_none_or(str::is_empty) => Verdict::Wait,
            Some(Ok(_)) => {
                self.resumes.lock().remove(&self.last_event_id);
                Verdict::Pass
            }
            Some(Err(_)) | None => {
                if self.opened.elapsed() < REAL_STREAM {
                    *self.resumes.lock().entry(self.last_event_id.clone()).or_default() += 1;
                }
                Verdict::Pass
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
}
