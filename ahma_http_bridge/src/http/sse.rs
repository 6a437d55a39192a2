//! Server-sent events: how a message is framed, and the body that streams them.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::session::{Event, Keep, Next, StreamReader};

/// Delay after which a client whose stream ended early should come back.
const RETRY_MS: u64 = 1000;
/// Events that are ready are sent together up to about this size.
const FRAME_BYTES: usize = 64 << 10;

/// The beginning of an event stream.
#[derive(Debug)]
pub(crate) enum Opening {
    /// The delay before coming back, and no event.
    Retry,
    /// An event that was taken out already.
    Event(Event),
    /// An event without data, which gives the client an id to resume from.
    Priming,
    /// The address of the HTTP+SSE transport.
    Endpoint(String),
}

/// A response that carries everything the reader gives. `guard` lives as long as the body does, and
/// [`StreamGuard::completed`] is called at the regular end of the stream.
pub(crate) fn response<G: StreamGuard>(
    reader: StreamReader,
    opening: Opening,
    keep_alive: Duration,
    guard: G,
) -> Response {
    let state = Streaming {
        reader,
        opening: Some(opening),
        keep_alive,
        guard,
    };
    let frames = futures::stream::unfold(Some(state), |state| async {
        let mut state = state?;
        let (frame, more) = state.next_frame().await;
        Some((Ok::<_, Infallible>(frame), more.then_some(state)))
    });
    event_response(Body::from_stream(frames))
}

/// A response of one message.
pub(crate) fn single_response(body: &Bytes) -> Response {
    let mut frame = BytesMut::with_capacity(body.len() + 32);
    frame.put_slice(b"event: message\ndata: ");
    frame.put_slice(body);
    frame.put_slice(b"\n\n");
    event_response(Body::from(frame.freeze()))
}

/// A stream that ends without a message, as of a cancelled request.
pub(crate) fn empty_response() -> Response {
    event_response(Body::empty())
}

fn event_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Lives as long as a stream is read.
pub(crate) trait StreamGuard: Send + 'static {
    /// The stream was not cut off.
    fn completed(&mut self) {}
}

struct Streaming<G> {
    reader: StreamReader,
    opening: Option<Opening>,
    keep_alive: Duration,
    guard: G,
}

impl<G: StreamGuard> Streaming<G> {
    /// The next piece of the body, and whether there is more to come.
    async fn next_frame(&mut self) -> (Bytes, bool) {
        let mut frame = BytesMut::new();
        match self.opening.take() {
            Some(Opening::Event(event)) => self.write(&mut frame, &event),
            Some(Opening::Priming) => {
                let (stream, last) = (self.reader.stream().id(), self.reader.position());
                frame.put_slice(format!("id: {stream}-{last}\nretry: {RETRY_MS}\ndata: \n\n").as_bytes());
                return (frame.freeze(), true);
            }
            Some(Opening::Endpoint(path)) => {
                frame.put_slice(format!("event: endpoint\ndata: {path}\n\n").as_bytes());
                return (frame.freeze(), true);
            }
            Some(Opening::Retry) => {
                // Something to send makes the response's head go out at once.
                return (Bytes::from(format!("retry: {RETRY_MS}\n\n")), true);
            }
            None => match tokio::time::timeout(self.keep_alive, self.reader.next()).await {
                Err(_) => return (Bytes::from_static(b": keep-alive\n\n"), true),
                Ok(next) => {
                    if !self.take(&mut frame, next) {
                        return (frame.freeze(), false);
                    }
                }
            },
        }
        while frame.len() < FRAME_BYTES
            && let Some(next) = self.reader.try_next()
        {
            if !self.take(&mut frame, next) {
                return (frame.freeze(), false);
            }
        }
        (frame.freeze(), true)
    }

    /// Adds what the reader found. `false` at the end.
    fn take(&mut self, frame: &mut BytesMut, next: Next) -> bool {
        match next {
            Next::Event(event) => self.write(frame, &event),
            Next::Missed(count) => {
                frame.put_slice(
                    format!(": {count} messages were dropped, they were not read in time\n\n").as_bytes(),
                );
            }
            Next::End => {
                self.guard.completed();
                return false;
            }
        }
        true
    }

    fn write(&mut self, frame: &mut BytesMut, event: &Event) {
        frame.reserve(event.body.len() + 48);
        if self.reader.stream().keep() == Keep::ForReplay {
            frame.put_slice(format!("id: {}-{}\n", self.reader.stream().id(), event.seq).as_bytes());
        }
        frame.put_slice(b"event: message\ndata: ");
        frame.put_slice(&event.body);
        frame.put_slice(b"\n\n");
    }
}
