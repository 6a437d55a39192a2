//! Messages on their way out, in the order they were given.

use std::{
    io,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncWrite;

/// Writes at once what can be written at once, and keeps the rest.
#[derive(Debug)]
pub(super) struct Outbox<W> {
    state: Mutex<State<W>>,
    /// Held by the one that waits for the writer: a writer wakes only the last that polled it.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State<W> {
    writer: W,
    waiting: BytesMut,
    /// Set by the first failed write; nothing can follow it.
    broken: Option<io::ErrorKind>,
    /// Someone waits for the writer and must be the last that polled it, or he would never be woken.
    awaited: bool,
}

/// Marks the writer as awaited; dropping it takes the mark back.
struct Awaiting<'a, W: AsyncWrite + Unpin>(&'a Outbox<W>);

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(super) fn new(writer: W) -> Self {
        let state = State {
            writer,
            waiting: BytesMut::new(),
            broken: None,
            awaited: false,
        };
        Self {
            state: Mutex::new(state),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Puts a whole message behind those before it, and writes what can be written at once. [`Outbox::flushed`] must
    /// follow: only it sees to the rest.
    pub(super) fn push(&self, message: &[u8]) {
        let mut state = self.lock();
        let idle = state.waiting.is_empty() && !state.awaited;
        state.waiting.extend_from_slice(message);
        if idle {
            let _ = state.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Returns when everything pushed before this call is written.
    pub(super) async fn flushed(&self) -> io::Result<()> {
        let _turn = self.turn.lock().await;
        self.lock().awaited = true;
        let _awaiting = Awaiting(self);
        std::future::poll_fn(|cx| self.lock().poll_flush(cx)).await
    }

    /// How many bytes the reader of our output has not taken yet; an error if there is no reader any more.
    pub(super) fn waiting_bytes(&self) -> io::Result<usize> {
        let state = self.lock();
        match state.broken {
            Some(kind) => Err(kind.into()),
            None => Ok(state.waiting.len()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: AsyncWrite + Unpin> Drop for Awaiting<'_, W> {
    fn drop(&mut self) {
        self.0.lock().awaited = false;
    }
}

impl<W: AsyncWrite + Unpin> State<W> {
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(kind) = self.broken {
            return Poll::Ready(Err(kind.into()));
        }
        let result = ready!(self.poll_write_all(cx));
        if let Err(error) = &result {
            self.broken = Some(error.kind());
            self.waiting = BytesMut::new();
        }
        Poll::Ready(result)
    }

    fn poll_write_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            match ready!(Pin::new(&mut self.writer).poll_write(cx, &self.waiting))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.waiting.advance(written),
            }
        }
        Pin::new(&mut self.writer).poll_flush(cx)
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
