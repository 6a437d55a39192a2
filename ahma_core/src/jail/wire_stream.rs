//! The transport of messages where there is no `SOCK_SEQPACKET`: JSON over a stream, with its length before it and
//! descriptors attached to that.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags},
    io::Errno,
    net::RecvFlags,
};
use serde::{Serialize, de::DeserializeOwned};

use super::wire_descriptors;
use crate::sandbox::held;

/// The kernel lets no environment grow beyond a mebibyte, and a policy is shorter still.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// Length of a message of a sender that is not trusted.
const MAX_SHORT_MESSAGE: usize = 4096;

/// Sockets take 8 KiB by default on macOS; a request should never have to wait for its reader.
const SEND_BUFFER_BYTES: usize = 256 * 1024;

const LENGTH_BYTES: usize = size_of::<u32>();

/// A pair of connected message sockets, closed on exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = held::stream_pair()?;
    for socket in [&ours, &theirs] {
        rustix::net::sockopt::set_socket_send_buffer_size(socket, SEND_BUFFER_BYTES)?;
    }
    Ok((ours, theirs))
}

/// Sends one message with descriptors; `EAGAIN` if nothing of it could be sent. A long one can only be taken by
/// [`receive`].
pub(crate) fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let text = [&length.to_be_bytes(), body.as_slice()].concat();
    let mut sent = wire_descriptors::send(&socket, &text, fds, held::NO_SIGNAL)?;
    // A message that was begun is finished: half of one would make nonsense of all that follow.
    while sent < text.len() {
        match rustix::net::send(&socket, &text[sent..], held::NO_SIGNAL) {
            Ok(more) => sent += more,
            Err(Errno::AGAIN) => wait(&socket, PollFlags::OUT),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives one message; `None` when the other side is closed.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    receive_up_to(socket, MAX_MESSAGE)
}

/// Receives one message that must be short.
pub(crate) fn receive_short<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    receive_up_to(socket, MAX_SHORT_MESSAGE)
}

fn receive_up_to<T: DeserializeOwned>(
    socket: impl AsFd,
    limit: usize,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut head = [0; LENGTH_BYTES];
    let Some((received, fds)) = receive_head(&socket, &mut head)? else {
        return Ok(None);
    };
    if !fill(&socket, &mut head[received..])? {
        return Ok(None);
    }
    let length = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
    if length > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message is too long",
        ));
    }
    let mut body = vec![0; length];
    if !fill(&socket, &mut body)? {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&body)?, fds)))
}

/// The first bytes of a message and the descriptors that come with them. Only this read says that nothing is there.
fn receive_head(socket: impl AsFd, head: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let (received, fds) = wire_descriptors::receive(socket, head, RecvFlags::empty())?;
    for fd in &fds {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((received > 0).then_some((received, fds)))
}

/// Reads the rest of what has begun, waiting for it if need be. False if the other side has closed in the middle.
fn fill(socket: impl AsFd, mut buffer: &mut [u8]) -> io::Result<bool> {
    while !buffer.is_empty() {
        match rustix::io::read(&socket, &mut *buffer) {
            Ok(0) => return Ok(false),
            Ok(length) => buffer = &mut buffer[length..],
            Err(Errno::AGAIN) => wait(&socket, PollFlags::IN),
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn wait(socket: impl AsFd, for_what: PollFlags) {
    rustix::event::poll(&mut [PollFd::new(&socket, for_what)], None).ok();
}
