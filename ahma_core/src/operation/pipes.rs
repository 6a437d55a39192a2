//! Reading what a command prints, as it comes.

use std::{
    future::poll_fn,
    io,
    os::fd::OwnedFd,
    task::{Context, Poll, ready},
};

use rustix::{
    buffer::spare_capacity,
    io::{Errno, read},
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{observe::Source, shell::OutputPipes};

/// The default capacity of a pipe: more is rarely there at once.
const READ_BYTES: usize = 64 << 10;

/// What a pipe is widened to when a command prints faster than that: sleeping and waking once per megabyte, not sixteen
/// times, is most of the speed on a busy machine.
const WIDE_BYTES: usize = 1 << 20;

/// The read ends of a command's output.
#[derive(Debug)]
pub(super) struct Pipes {
    /// Those that have not ended. The one read last stands last.
    open: Vec<Stream>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Stream {
    source: Source,
    fd: AsyncFd<OwnedFd>,
    width: Width,
}

/// How much the kernel holds for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Default,
    Wide,
}

impl Stream {
    fn new(source: Source, fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: an `OwnedFd` is open and stays the same descriptor until it is dropped, which the `AsyncFd` that takes
        // it does last; nothing here hands out mutable access to it.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(Self {
            source,
            fd,
            width: Width::Default,
        })
    }

    /// Asks the kernel to hold more. It may refuse, and a terminal always does; then it stays slower.
    fn widen(&mut self) {
        if self.width == Width::Default {
            self.width = Width::Wide;
            #[cfg(target_os = "linux")]
            rustix::pipe::fcntl_setpipe_size(self.fd.get_ref(), WIDE_BYTES).ok();
        }
    }
}

impl Pipes {
    pub(super) fn new(output: OutputPipes) -> io::Result<Self> {
        let open = match output {
            OutputPipes::Merged(fd) => vec![Stream::new(Source::Stdout, fd)?],
            OutputPipes::Separate { stdout, stderr } => {
                vec![
                    Stream::new(Source::Stdout, stdout)?,
                    Stream::new(Source::Stderr, stderr)?,
                ]
            }
        };
        // The pages of the buffer are touched only as far as output needs them.
        Ok(Self {
            open,
            buffer: Vec::with_capacity(READ_BYTES),
        })
    }

    /// Whether anything can still come.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The next bytes; none when a stream has ended. Loses nothing when dropped early.
    pub(super) async fn read(&mut self) -> Option<(Source, &[u8])> {
        let source = poll_fn(|cx| self.poll_read(cx)).await?;
        Some((source, &self.buffer))
    }

    /// What is there now, without waiting: for after the last writer is gone.
    pub(super) fn read_now(&mut self) -> Option<(Source, &[u8])> {
        while let Some(stream) = self.open.last() {
            self.buffer.clear();
            match read_once(stream.fd.get_ref(), &mut self.buffer) {
                Ok(1..) => return Some((stream.source, &self.buffer)),
                Ok(0) | Err(_) => self.open.pop(),
            };
        }
        None
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Source>> {
        for place in 0..self.open.len() {
            match self.poll_stream(place, cx) {
                Poll::Ready(Ok(1..)) => {
                    // To the end of the row, so that a loud stream does not silence the other.
                    self.open[place..].rotate_left(1);
                    let filled = self.buffer.len() == self.buffer.capacity();
                    return Poll::Ready(self.open.last_mut().map(|stream| {
                        if filled {
                            stream.widen();
                        }
                        stream.source
                    }));
                }
                Poll::Ready(ended) => {
                    if let Err(error) = ended
                        && !is_terminal_end(&error)
                    {
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

/// A pseudo-terminal whose last user is gone answers with EIO instead of an end.
fn is_terminal_end(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::IO)
}

#[cfg(test)]
#[path = "pipes_tests.rs"]
mod tests;
