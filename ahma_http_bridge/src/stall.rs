//! Ends connections whose clients do not take what they asked for.
//!
//! A client may be slow. One that takes nothing at all for long enough would hold its connection, and what waits to be
//! sent, for ever. In HTTP/2 that shows in single answers, since the connection itself goes on: see [`MeasuredBody`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::activity::{Activity, Uses};

/// A connection that fails when not a byte could be written for so long.
#[derive(Debug)]
pub(crate) struct StallLimit<S> {
    stream: S,
    timeout: Duration,
    /// Runs while something waits to be written.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> StallLimit<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self {
            stream,
            timeout,
            waiting: None,
        }
    }
}

impl<S: Unpin> StallLimit<S> {
    /// Result of an attempt to write; an error if there has been no room for too long.
    fn attempt<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let written = write(Pin::new(&mut self.stream), cx);
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let timeout = self.timeout;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(waiting.as_mut().poll(cx));
        tracing::debug!("a client does not read what it asked for; its connection is closed");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallLimit<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut()
            .attempt(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .attempt(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallLimit<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

/// Bytes of an answer that HTTP/2 takes in one go. A client that takes less than this in the time a connection may be idle
/// counts as one that takes nothing.
const PIECE_BYTES: usize = 64 << 10;

/// The body of an answer over HTTP/2. Its connection is in use while the body has nothing to say, but not while it waits
/// for the client to take what it said: then no more is asked for.
#[derive(Debug)]
pub(crate) struct MeasuredBody<B> {
    body: B,
    /// The rest of the last frame, still to be taken.
    rest: Bytes,
    uses: Arc<Uses>,
    asked: Option<Activity>,
}

impl<B> MeasuredBody<B> {
    pub(crate) fn new(body: B, uses: Arc<Uses>) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            uses,
            asked: None,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for MeasuredBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            let uses = &this.uses;
            this.asked.get_or_insert_with(|| Activity::begin(uses));
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            this.asked = None;
            match frame {
                Some(Ok(frame)) if frame.is_data() => this.rest = frame.into_data().unwrap_or_default(),
                other => return Poll::Ready(other),
            }
        }
        // The time without use begins anew with every piece.
        drop(Activity::begin(&this.uses));
        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

#[cfg(test)]
#[path = "stall_tests.rs"]
mod tests;
