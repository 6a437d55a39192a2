//! Reading what a command prints, as it comes.

use std::{
    future::poll_fn,
    io,
    os::fd::OwnedFd,
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    io::{Errno, read},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::{Instant, sleep_until},
};

use crate::{observe::StreamName, sandbox::held, shell::OutputPipes};

/// The default capacity of a pipe: more is rarely there at once.
const READ_BYTES: usize = 64 << 10;

/// After so much output a command counts as loud. Its pipe is widened, and read once in a while instead of at each of its
/// writes: sleeping and waking are what costs, most of all on a busy machine.
const LOUD_BYTES: u64 = 256 << 10;

/// The pause before a loud pipe is read again once it is empty: unnoticed by people, and too short to fill it.
const PAUSE: Duration = Duration::from_millis(1);

/// The pause before a terminal that no process has open is read again. Closing it would send the command a hang-up: many a
/// program closes its output some time before it ends, and some go on without.
const TERMINAL_PAUSE: Duration = Duration::from_millis(100);

/// The read ends of a command's output.
#[derive(Debug)]
pub(super) struct Pipes {
    /// Those that have not ended. The one read last stands last.
    open: Vec<Stream>,
    buffer: Vec<u8>,
    pause_until: Option<Instant>,
}

#[derive(Debug)]
struct Stream {
    source: StreamName,
    fd: AsyncFd<OwnedFd>,
    read_bytes: u64,
    pace: ReadPace,
}

/// Promptness of reading a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadPace {
    /// As soon as anything is there.
    Prompt,
    /// A little later, so that more is there. Only where the kernel holds enough meanwhile.
    Relaxed,
}

impl Stream {
    fn new(source: StreamName, fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: an `OwnedFd` is open and stays the same descriptor until it is dropped, which the `AsyncFd` that takes
        // it does last; nothing here hands out mutable access to it.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(Self {
            source,
            fd,
            read_bytes: 0,
            pace: ReadPace::Prompt,
        })
    }

    /// Counts what was read, and relaxes once the command turns out loud.
    fn count(&mut self, bytes: usize) {
        let was_quiet = self.read_bytes < LOUD_BYTES;
        self.read_bytes += bytes as u64;
        if was_quiet && self.read_bytes >= LOUD_BYTES && widen(self.fd.get_ref()) {
            self.pace = ReadPace::Relaxed;
        }
    }
}

impl Pipes {
    pub(super) fn new(output: OutputPipes) -> io::Result<Self> {
        let open = match output {
            OutputPipes::Merged(fd) => vec![Stream::new(StreamName::Stdout, fd)?],
            OutputPipes::Separate { stdout, stderr } => {
                vec![
                    Stream::new(StreamName::Stdout, stdout)?,
                    Stream::new(StreamName::Stderr, stderr)?,
                ]
            }
        };
        // The pages of the buffer are touched only as far as output needs them.
        Ok(Self {
            open,
            buffer: Vec::with_capacity(READ_BYTES),
            pause_until: None,
        })
    }

    /// True if there may be more output.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The next bytes; none when a stream has ended or has no writer. Loses nothing when dropped early.
    pub(super) async fn read(&mut self) -> Option<(StreamName, &[u8])> {
        if let Some(until) = self.pause_until {
            sleep_until(until).await;
            self.pause_until = None;
        }
        let source = poll_fn(|cx| self.poll_read(cx)).await?;
        Some((source, &self.buffer))
    }

    /// Output that is there now, without waiting: for after the last writer is gone.
    pub(super) fn read_now(&mut self) -> Option<(StreamName, &[u8])> {
        while let Some(stream) = self.open.last() {
            self.buffer.clear();
            match read_once(stream.fd.get_ref(), &mut self.buffer) {
                Ok(1..) => return Some((stream.source, &self.buffer)),
                Ok(0) | Err(_) => self.open.pop(),
            };
        }
        None
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamName>> {
        for place in 0..self.open.len() {
            match self.poll_stream(place, cx) {
                Poll::Ready(Ok(1..)) => {
                    // To the end of the row, so that a loud stream does not silence the other.
                    self.open[place..].rotate_left(1);
                    let drained = self.buffer.len() < self.buffer.capacity();
                    return Poll::Ready(self.open.last_mut().map(|stream| {
                        stream.count(self.buffer.len());
                        if drained && stream.pace == ReadPace::Relaxed {
                            self.pause_until = Some(Instant::now() + PAUSE);
                        }
                        stream.source
                    }));
                }
                Poll::Ready(Err(error)) if is_terminal_end(&error) => {
                    self.pause_until = Some(Instant::now() + TERMINAL_PAUSE);
                    return Poll::Ready(None);
                }
                Poll::Ready(ended) => {
                    if let Err(error) = ended {
                        tracing::warn!(%error, "cannot read the output of a command any further");
                    }
                    self.open.remove(place);
                    return Poll::Ready(None);
                }
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    fn poll_stream(&mut self, place: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stream = &self.open[place];
        loop {
            let mut ready = ready!(stream.fd.poll_read_ready(cx))?;
            self.buffer.clear();
            match ready.try_io(|fd| read_once(fd.get_ref(), &mut self.buffer)) {
                Ok(done) => return Poll::Ready(done),
                Err(_would_block) => {}
            }
        }
    }
}

fn read_once(fd: &OwnedFd, buffer: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        match read(fd, spare_capacity(buffer)) {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

/// Makes the kernel hold a megabyte. It may refuse, and a terminal always does.
fn widen(pipe: &OwnedFd) -> bool {
    held::widen_pipe(pipe, 1 << 20)
}

/// A pseudo-terminal that no process has open answers with EIO.
fn is_terminal_end(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::IO)
}

#[cfg(test)]
#[path = "pipes_tests.rs"]
mod tests;
