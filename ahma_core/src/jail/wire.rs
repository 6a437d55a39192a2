//! The messages between server, jail and supervisors: JSON over `SOCK_SEQPACKET`, so that one send is one message, with
//! descriptors attached. A message too long for that is attached as a file in memory.

use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut, Read as _, Seek as _, Write as _},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use rustix::{
    fs::MemfdFlags,
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::sandbox::{Policy, Tier};

/// Length of a message sent directly. A policy with some hundred grants is far below it; a socket takes 200 KiB
/// by default.
const MAX_MESSAGE: usize = 160 * 1024;

/// Length of a message in a file. The kernel lets no environment grow beyond 6 MiB, of which JSON may make six times
/// as much.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Sent instead of a message that is in a file, the first descriptor. JSON has no such byte.
const IN_FILE: &[u8] = b"\0";

/// Descriptors in one message: control, script and two output pipes.
const MAX_DESCRIPTORS: usize = 4;

/// Sent to a new jail, once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Configure {
    pub(crate) policy: Policy,
    pub(crate) tier: Tier,
    /// Try first what every supervisor will do.
    pub(crate) rehearse: bool,
    pub(crate) shell: PathBuf,
    /// The whole environment of every command.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) max_processes: u32,
    pub(crate) max_file_bytes: u64,
}

/// The jail's answer to [`Configure`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Configured {
    Ready {
        landlock_abi: i32,
    },
    /// This tier does not work here.
    Refused {
        reason: String,
    },
}

/// Asks the jail for one confined process. Descriptors: control socket, script pipe, then the output pipes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) kind: ProcessKind,
    pub(crate) output: Output,
}

/// Kind of an idle process, which decides what is written to its pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProcessKind {
    /// A shell that reads a script.
    Shell,
    /// Our own code, which becomes the program that an [`ExecRequest`](super::program) names.
    Program,
}

/// Destination of the output.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Output {
    Merged,
    Separate,
    Pty,
}

/// From the server to a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// The signal now, TERM after half the grace, KILL after the other half, until nothing is left.
    Stop { signal: i32, grace_ms: u64 },
}

/// From a supervisor to the server, in this order: perhaps `Terminal`, then `Idle`, perhaps `Exited`, then `Gone`; or
/// `Failed` and nothing more.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A pseudo-terminal's master is attached.
    Terminal,
    /// The process exists and waits for what to run. The jail is needed no more.
    Idle,
    /// The command itself ended; something that it started still runs.
    Exited(Exited),
    /// Nothing is left. Holds the command's end if that was not reported before.
    Gone { exited: Option<Exited> },
    /// No process could be started.
    Failed { reason: String },
}

/// The end of a command.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exited {
    /// As `wait4` gave it.
    pub(crate) wait_status: i32,
    pub(crate) cpu_us: u64,
    pub(crate) peak_memory_kib: u64,
}

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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "too many descriptors in a message",
        ));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(body)], &mut ancillary, SendFlags::NOSIGNAL)?;
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let received = rustix::net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(body)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        );
        match received {
            // A side that closes with something unread makes the kernel say so once, before its last messages.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            received => break received?,
        }
    };
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    Ok(Some((&body[..received.bytes], fds)))
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
