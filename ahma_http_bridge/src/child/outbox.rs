//! The way to a child's standard input.
//!
//! A message is written by whoever sends it, without a hop to another task, as long as the pipe takes it;
//! only what the pipe refuses is queued for the flusher. The queue is bounded, so a child that stopped
//! reading costs a fixed amount of memory and then a refusal, never the sender's time.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, BytesMut};
use tokio::net::unix::pipe;
use tokio::sync::Notify;

/// More than the largest body a client may send by default, several times.
const MAX_QUEUED_BYTES: usize = 32 << 20;

#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug)]
struct State {
    /// `None` once closed: the child sees the end of its input when the flusher lets go as well.
    pipe: Option<Arc<pipe::Sender>>,
    /// Whatever is here goes out before anything new, so messages never mix.
    queued: BytesMut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutboxError {
    Closed,
    Full,
}

impl Outbox {
    pub(crate) fn new(pipe: pipe::Sender) -> Self {
        let state = State {
            pipe: Some(Arc::new(pipe)),
            queued: BytesMut::new(),
        };
        Self {
            state: Mutex::new(state),
            wake: Notify::new(),
        }
    }

    /// Sends whole lines; each must end with a line feed.
    pub(crate) fn send(&self, lines: &[u8]) -> Result<(), OutboxError> {
        let mut state = self.lock();
        let Some(pipe) = &state.pipe else {
            return Err(OutboxError::Closed);
        };
        let mut rest = lines;
        if state.queued.is_empty() {
            while !rest.is_empty() {
                match pipe.try_write(rest) {
                    Ok(0) => break,
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => {
                        drop(state);
                        self.close();
                        return Err(OutboxError::Closed);
                    }
                }
            }
        } else if state.queued.len() + rest.len() > MAX_QUEUED_BYTES {
            return Err(OutboxError::Full);
        }
        if !rest.is_empty() {
            state.queued.extend_from_slice(rest);
            drop(state);
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Ends the child's input. What is still queued is dropped.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.pipe = None;
        state.queued.clear();
        drop(state);
        self.wake.notify_one();
    }

    /// Writes what the pipe did not take at once, until closed.
    pub(crate) async fn flush(&self) {
        loop {
            let Some(pipe) = self.lock().pipe.clone() else {
                return;
            };
            if self.lock().queued.is_empty() {
                drop(pipe);
                self.wake.notified().await;
                continue;
            }
            tokio::select! {
                ready = pipe.writable() => if ready.is_err() { return self.close() },
                () = self.wake.notified() => continue,
            }
            let mut state = self.lock();
            match pipe.try_write(&state.queued) {
                Ok(written) => state.queued.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    drop(state);
                    return self.close();
                }
            }
            if state.queued.is_empty() {
                // A burst must not keep its memory for the rest of the child's life.
                state.queued = BytesMut::new();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
