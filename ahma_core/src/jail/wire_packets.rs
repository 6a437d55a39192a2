//! The transport of messages on Linux: JSON over `SOCK_SEQPACKET`, so that one send is one message, with descriptors
//! attached. A message too long for that is attached as a file in memory.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::MemfdFlags,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType},
};
use serde::{Serialize, de::DeserializeOwned};

use super::wire_descriptors;

/// Length of a message sent directly. A policy with some hundred grants is far below it; a socket takes 200 KiB
/// by default.
const MAX_MESSAGE: usize = 160 * 1024;

/// Length of a message in a file. The kernel lets no environment grow beyond 6 MiB, of which JSON may make six times
/// as much.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Sent instead of a message that is in a file, the first descriptor. JSON has no such byte.
const IN_FILE: &[u8] = b"\0";

/// A pair of connected message sockets, closed on exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// Sends one message with descriptors; `EAGAIN` on a full non-blocking socket. A long one can only be taken by
/// [`receive`].
pub(crate) fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    // Most are short. Those of a supervisor that shares the jail's memory have to be: it must not allocate any.
    let mut short = [0; 256];
    let mut rest = &mut short[..];
    if serde_json::to_writer(&mut rest, message).is_ok() {
        let length = 256 - rest.len();
        return send_body(socket, &short[..length], fds);
    }
    let body = serde_json::to_vec(message)?;
    if body.len() <= MAX_MESSAGE {
        return send_body(socket, &body, fds);
    }
    let mut file = File::from(rustix::fs::memfd_create("message", MemfdFlags::CLOEXEC)?);
    file.write_all(&body)?;
    file.rewind()?;
    let fds = [&[file.as_fd()], fds].concat();
    send_body(socket, IN_FILE, &fds)
}

fn send_body(socket: impl AsFd, body: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    wire_descriptors::send(socket, body, fds, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message; `None` when the other side is closed.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut body = vec![0; MAX_MESSAGE];
    let Some((mut received, mut fds)) = receive_into(socket, &mut body)? else {
        return Ok(None);
    };
    let mut in_file = Vec::new();
    if received == IN_FILE && !fds.is_empty() {
        File::from(fds.remove(0))
            .take(MAX_FILE)
            .read_to_end(&mut in_file)?;
        received = &in_file;
    }
    Ok(Some((serde_json::from_slice(received)?, fds)))
}

/// Receives one short message without a large buffer, and never from a file: a sender that is not trusted could let us
/// wait for it.
pub(crate) fn receive_short<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut body = [0; 4096];
    let Some((received, fds)) = receive_into(socket, &mut body)? else {
        return Ok(None);
    };
    Ok(Some((serde_json::from_slice(received)?, fds)))
}

fn receive_into(socket: impl AsFd, body: &mut [u8]) -> io::Result<Option<(&[u8], Vec<OwnedFd>)>> {
    let (received, fds) = wire_descriptors::receive(socket, body, RecvFlags::CMSG_CLOEXEC)?;
    Ok((received > 0).then_some((&body[..received], fds)))
}
