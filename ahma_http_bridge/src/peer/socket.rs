//! The other end's socket, as the kernel knows it: one question by `sock_diag`, whatever the number of connections.
//!
//! The tables in `/proc/net` say the same, but reading them costs milliseconds on a machine with much memory.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    /// Zero if every descriptor of it is closed already; then the user is not to be trusted either.
    pub(super) inode: u32,
    pub(super) uid: u32,
}

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const ANSWER_BYTES: usize = HEADER_BYTES + 72;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const TCP: u8 = 6;

/// The socket of this machine whose own address is `theirs` and which is connected to `ours`.
pub(super) fn find(theirs: SocketAddr, ours: SocketAddr) -> io::Result<Option<Socket>> {
    let kernel = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    rustix::net::sendto(
        &kernel,
        &request(theirs, ours)?,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut answer = [0_u8; 512];
    // The kernel answers before `sendto` returns.
    let (_, length) = rustix::net::recv(&kernel, &mut answer[..], RecvFlags::DONTWAIT)?;
    read_answer(answer.get(..length).unwrap_or_default())
}

/// An IPv4 socket, and an IPv6 socket that speaks IPv4, are both found by their IPv4 addresses.
fn request(theirs: SocketAddr, ours: SocketAddr) -> io::Result<Vec<u8>> {
    let (family, from, to) = match (theirs.ip().to_canonical(), ours.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            (AddressFamily::INET, padded(from.octets()), padded(to.octets()))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => (AddressFamily::INET6, from.octets(), to.octets()),
        _ => return Err(io::Error::other("the two ends of a connection differ in kind")),
    };
    let interface = match theirs {
        SocketAddr::V6(theirs) if family == AddressFamily::INET6 => theirs.scope_id(),
        _ => 0,
    };
    let family = u8::try_from(family.as_raw()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(REQUEST_BYTES);
    message.extend(
        u32::try_from(REQUEST_BYTES)
            .map_err(io::Error::other)?
            .to_ne_bytes(),
    );
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and sender: one question, one answer.
    message.extend([0; 8]);
    // No extensions, any state.
    message.extend([family, TCP, 0, 0]);
    message.extend(u32::MAX.to_ne_bytes());
    message.extend(theirs.port().to_be_bytes());
    message.extend(ours.port().to_be_bytes());
    message.extend(from);
    message.extend(to);
    message.extend(interface.to_ne_bytes());
    // Any cookie.
    message.extend([0xff; 8]);
    Ok(message)
}

fn read_answer(answer: &[u8]) -> io::Result<Option<Socket>> {
    let short = || io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel's answer is too short");
    let number = |at: usize| {
        let bytes = answer.get(at..at + 4).ok_or_else(short)?;
        Ok::<u32, io::Error>(u32::from_ne_bytes(bytes.try_into().map_err(|_| short())?))
    };
    let kind = answer.get(4..6).ok_or_else(short)?;
    if kind == NLMSG_ERROR.to_ne_bytes() {
        let error = io::Error::from_raw_os_error(number(HEADER_BYTES)?.cast_signed().wrapping_neg());
        return match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        };
    }
    if kind != SOCK_DIAG_BY_FAMILY.to_ne_bytes() {
        return Err(io::Error::other("the kernel answered something else"));
    }
    Ok(Some(Socket {
        uid: number(ANSWER_BYTES - 8)?,
        inode: number(ANSWER_BYTES - 4)?,
    }))
}

fn padded(address: [u8; 4]) -> [u8; 16] {
    let mut words = [0; 16];
    words[..4].copy_from_slice(&address);
    words
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
