//! Messages on their way out, in the order they were given, with bounded memory.
//!
//! A message is written by the task that sends it, without a hop to another one, as long as the other side takes it; only the
//! rest is queued. A reader that has stopped reading costs a fixed amount of memory and then a refusal, never the sender's time.
//! The queue moves on only while a task is in [`Outbox::flushed`] or [`Outbox::run`].

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use tokio::{io::AsyncWrite, sync::Notify};

/// Writes at once what can be written at once, and keeps the rest.
#[derive(Debug)]
pub struct Outbox<W> {
    state: Mutex<State<W>>,
    max_queued_bytes: usize,
    /// Held by the task that waits for the writer: a writer wakes only the last one that polled it.
    turn: tokio::sync::Mutex<()>,
    /// Wakes [`Outbox::run`] when something is queued or the outbox closed.
    changed: Notify,
}

#[derive(Debug)]
struct State<W> {
    /// `None` once closed: the reader sees the end of its input.
    writer: Option<W>,
    queued: BytesMut,
    /// The task that waits for the writer. No other one may poll it, or this one would never be woken.
    waiting: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OutboxError {
    #[error("the reader is gone")]
    Closed,
    #[error("the reader has stopped reading")]
    Full,
}

impl From<OutboxError> for io::Error {
    fn from(error: OutboxError) -> Self {
        let kind = match error {
            OutboxError::Closed => io::ErrorKind::BrokenPipe,
            OutboxError::Full => io::ErrorKind::WouldBlock,
        };
        Self::new(kind, error)
    }
}

/// The turn of the task that waits for the writer; dropping it ends the wait.
struct Waiting<'a, W>(&'a Outbox<W>);

impl<W: AsyncWrite + Unpin> Outbox<W> {
    /// An outbox that refuses messages while more than `max_queued_bytes` would be queued. A single message of any size is taken.
    pub fn new(writer: W, max_queued_bytes: usize) -> Self {
        Self {
            state: Mutex::new(State {
                writer: Some(writer),
                queued: BytesMut::new(),
                waiting: None,
            }),
            max_queued_bytes,
            turn: tokio::sync::Mutex::new(()),
            changed: Notify::new(),
        }
    }

    /// Sends a whole message after those before it: writes what can be written at once, and queues the rest.
    pub fn send(&self, message: &[u8]) -> Result<(), OutboxError> {
        let mut state = self.state.lock();
        if state.writer.is_none() {
            return Err(OutboxError::Closed);
        }
        let mut rest = message;
        if !state.queued.is_empty() {
            if state.queued.len() + message.len() > self.max_queued_bytes {
                return Err(OutboxError::Full);
            }
        } else if state.waiting.is_none() {
            rest = state.write_some(message)?;
        }
        if !rest.is_empty() {
            state.queued.extend_from_slice(rest);
            drop(state);
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Returns when everything sent before this call is written, or when the outbox is closed.
    pub async fn flushed(&self) -> Result<(), OutboxError> {
        let _turn = self.turn.lock().await;
        let _waiting = Waiting(self);
        std::future::poll_fn(|context| self.state.lock().poll_flush(context)).await
    }

    /// Writes what could not be written at once, until the outbox is closed or its reader is gone.
    pub async fn run(&self) {
        while self.flushed().await.is_ok() {
            self.changed.notified().await;
        }
    }

    /// Number of bytes that the reader has not taken yet.
    pub fn queued_bytes(&self) -> Result<usize, OutboxError> {
        let state = self.state.lock();
        match state.writer {
            Some(_) => Ok(state.queued.len()),
            None => Err(OutboxError::Closed),
        }
    }

    /// Ends the reader's input. Queued messages are dropped.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.close();
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        self.changed.notify_one();
    }
}

impl<W> Drop for Waiting<'_, W> {
    fn drop(&mut self) {
        self.0.state.lock().waiting = None;
    }
}

impl<W: AsyncWrite + Unpin> State<W> {
    fn close(&mut self) {
        self.writer = None;
        self.queued = BytesMut::new();
    }

    /// The part of a message that the writer does not take now.
    fn write_some<'m>(&mut self, message: &'m [u8]) -> Result<&'m [u8], OutboxError> {
        let mut context = Context::from_waker(Waker::noop());
        let mut rest = message;
        while !rest.is_empty() {
            match poll_write(&mut self.writer, &mut context, rest) {
                Poll::Ready(written) => rest = &rest[written?..],
                Poll::Pending => return Ok(rest),
            }
        }
        if let Some(writer) = &mut self.writer {
            // What is still pending here is left to `flushed`.
            let _ = Pin::new(writer).poll_flush(&mut context);
        }
        Ok(rest)
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), OutboxError>> {
        self.waiting = Some(context.waker().clone());
        while !self.queued.is_empty() {
            let written = ready!(poll_write(&mut self.writer, context, &self.queued));
            self.queued.advance(written?);
        }
        // A burst must not keep its memory for the rest of the connection.
        self.queued = BytesMut::new();
        let Some(writer) = &mut self.writer else {
            return Poll::Ready(Err(OutboxError::Closed));
        };
        let flushed = ready!(Pin::new(writer).poll_flush(context));
        Poll::Ready(flushed.map_err(|_| {
            self.close();
            OutboxError::Closed
        }))
    }
}

/// Writes once. After an error nothing can follow, so the writer is dropped.
fn poll_write<W: AsyncWrite + Unpin>(
    writer: &mut Option<W>,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<Result<usize, OutboxError>> {
    let Some(open) = writer else {
        return Poll::Ready(Err(OutboxError::Closed));
    };
    match ready!(Pin::new(open).poll_write(context, bytes)) {
        Ok(written @ 1..) => Poll::Ready(Ok(written)),
        Ok(0) | Err(_) => {
            *writer = None;
            Poll::Ready(Err(OutboxError::Closed))
        }
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
