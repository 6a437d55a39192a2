//! Parts of a page that come again when they change, as server-sent events.
//!
//! The history is written by other processes. A page that is open looks whether that has happened, which is a glance at
//! memory shared with the writers, and renders again only then.

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::{Duration, Instant},
};

use axum::response::{
    IntoResponse as _, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::stream;
use maud::Markup;

use super::{routes::Console, source::SourceError};

/// Time between two glances. With the third of a second of the writers, a page is never behind by a second.
const GLANCE: Duration = Duration::from_millis(250);

/// Time after which a page is rendered again although nothing was written: load, memory, sessions and a pool
/// are not in the history.
const REFRESH: Duration = Duration::from_secs(2);

/// A change of an open page.
#[derive(Debug)]
pub(super) enum PageChange {
    /// The content of the element with this id is this now.
    Content(&'static str, Markup),
    /// Rows of the list with this id: each replaces the one with its own id, or is new at the end.
    Rows(&'static str, Vec<Markup>),
    /// The whole page is to be loaded again.
    Reload,
}

/// A page that is open.
pub(super) trait PageView: Send + 'static {
    fn console(&self) -> &Console;

    /// The parts as they are now. Content that is as before is not sent.
    fn changes(&mut self) -> impl Future<Output = Result<Vec<PageChange>, SourceError>> + Send;
}

pub(super) fn stream(view: impl PageView) -> Response {
    let following = Following {
        view,
        version: Vec::new(),
        looked: None,
        sent: HashMap::new(),
        is_last: false,
    };
    let events = stream::unfold(following, |mut following| async move {
        let event = following.next().await?;
        Some((Ok::<_, Infallible>(event), following))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

struct Following<V> {
    view: V,
    /// Of the history, when it was last looked at.
    version: Vec<i64>,
    looked: Option<Instant>,
    /// Hashes of content.
    sent: HashMap<&'static str, u64>,
    /// The page is told to load itself again, and nothing after that.
    is_last: bool,
}

impl<V: PageView> Following<V> {
    /// Waits for changes; none at the end.
    async fn next(&mut self) -> Option<Event> {
        while !self.is_last {
            let shutdown = self.view.console().shutdown.clone();
            if self.looked.is_some() {
                tokio::select! {
                    () = tokio::time::sleep(GLANCE) => {}
                    () = shutdown.cancelled() => return None,
                }
            }
            let source = &self.view.console().source;
            let version = source.read(|reader| reader.version()).await.ok()?;
            let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= REFRESH);
            if version == self.version && !is_due {
                continue;
            }
            (self.version, self.looked) = (version, Some(Instant::now()));
            // A page that cannot be read any more stays as it is; the browser comes again.
            let changes = self.view.changes().await.ok()?;
            let data: Vec<String> = changes
                .into_iter()
                .filter_map(|change| self.line(change))
                .collect();
            if !data.is_empty() {
                return Some(Event::default().data(format!("[{}]", data.join(","))));
            }
        }
        None
    }

    /// A change as JSON, unless it is none. JSON has no line breaks, which would end an event.
    fn line(&mut self, change: PageChange) -> Option<String> {
        let said = match change {
            PageChange::Content(id, content) => {
                let mut hasher = DefaultHasher::new();
                content.0.hash(&mut hasher);
                let hash = hasher.finish();
                if self.sent.insert(id, hash) == Some(hash) {
                    return None;
                }
                serde_json::json!({ "content": id, "html": content.0 })
            }
            PageChange::Rows(_, rows) if rows.is_empty() => return None,
            PageChange::Rows(id, rows) => {
                let html: String = rows.into_iter().map(|row| row.0).collect();
                serde_json::json!({ "rows": id, "html": html })
            }
            PageChange::Reload => {
                self.is_last = true;
                serde_json::json!({ "reload": true })
            }
        };
        Some(said.to_string())
    }
}
