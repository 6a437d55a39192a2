//! Standard input and output without a thread in between.
//!
//! Tokio's own handles pass every read and write to a pool of blocking threads, which costs more than a whole call of
//! ours. Clients start a server with pipes or, those built on Node, with socket pairs; both can be waited for by the
//! runtime itself. The mode of the descriptors we were given is never changed, because others may share it: a pipe is
//! opened a second time, a socket is asked not to wait in each call. Everything else falls back to Tokio's handles.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    net::{RecvFlags, SendFlags},
};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

use crate::sandbox::held;

/// A standard stream. Must be opened inside a runtime.
#[derive(Debug)]
pub(crate) enum StandardStream<T> {
    Pipe(AsyncFd<OwnedFd>),
    Socket(AsyncFd<OwnedFd>),
    Other(T),
}

pub(crate) type StandardInput = StandardStream<tokio::io::Stdin>;
pub(crate) type StandardOutput = StandardStream<tokio::io::Stdout>;

impl StandardInput {
    pub(crate) fn open() -> Self {
        Self::waitable(io::stdin(), "/proc/self/fd/0", OFlags::RDONLY, Interest::READABLE)
            .unwrap_or_else(|| Self::Other(tokio::io::stdin()))
    }
}

impl StandardOutput {
    pub(crate) fn open() -> Self {
        Self::waitable(
            io::stdout(),
            "/proc/self/fd/1",
            OFlags::WRONLY,
            Interest::WRITABLE,
        )
        .unwrap_or_else(|| Self::Other(tokio::io::stdout()))
    }
}

impl<T> StandardStream<T> {
    /// A pipe or a socket with a descriptor of our own; none for other kinds of files, or if it cannot be opened.
    fn waitable(stream: impl AsFd, by_name: &str, access: OFlags, interest: Interest) -> Option<Self> {
        type Variant<T> = fn(AsyncFd<OwnedFd>) -> StandardStream<T>;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&stream).ok()?.st_mode);
        let (fd, variant): (_, Variant<T>) = match kind {
            FileType::Fifo => {
                let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
                (rustix::fs::open(by_name, flags, Mode::empty()), Self::Pipe)
            }
            FileType::Socket => (rustix::io::fcntl_dupfd_cloexec(&stream, FIRST_FREE), Self::Socket),
            _ => return None,
        };
        // SAFETY: the `AsyncFd` owns the descriptor, and an `OwnedFd` stays the same open descriptor until it is dropped.
        let fd = unsafe { AsyncFd::register_with_interest(fd.ok()?, interest) }.ok()?;
        Some(variant(fd))
    }
}

/// Above the three standard streams.
const FIRST_FREE: i32 = 3;

impl AsyncRead for StandardInput {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        type ReadOnce = fn(&OwnedFd, &mut [u8]) -> io::Result<usize>;
        let (fd, read): (_, ReadOnce) = match self.get_mut() {
            Self::Pipe(fd) => (fd, |fd, buf| Ok(rustix::io::read(fd, buf)?)),
            Self::Socket(fd) => (fd, |fd, buf| {
                Ok(rustix::net::recv(fd, buf, RecvFlags::DONTWAIT)?.0)
            }),
            Self::Other(stdin) => return Pin::new(stdin).poll_read(cx, buf),
        };
        loop {
            let mut ready = ready!(fd.poll_read_ready(cx))?;
            if let Ok(result) = ready.try_io(|fd| read(fd.get_ref(), buf.initialize_unfilled())) {
                buf.advance(result?);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for StandardOutput {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        type WriteOnce = fn(&OwnedFd, &[u8]) -> io::Result<usize>;
        let (fd, write): (_, WriteOnce) = match self.get_mut() {
            Self::Pipe(fd) => (fd, |fd, bytes| Ok(rustix::io::write(fd, bytes)?)),
            Self::Socket(fd) => (fd, |fd, bytes| {
                Ok(rustix::net::send(
                    fd,
                    bytes,
                    SendFlags::DONTWAIT | held::NO_SIGNAL,
                )?)
            }),
            Self::Other(stdout) => return Pin::new(stdout).poll_write(cx, bytes),
        };
        loop {
            let mut ready = ready!(fd.poll_write_ready(cx))?;
            if let Ok(result) = ready.try_io(|fd| write(fd.get_ref(), bytes)) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(_) | Self::Socket(_) => Poll::Ready(Ok(())),
            Self::Other(stdout) => Pin::new(stdout).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
