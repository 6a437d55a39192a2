//! A TCP connection, as the kernel describes the socket of a process: `struct socket_fdinfo` of `sys/proc_info.h`, which the
//! `libc` crate does not have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The whole description.
pub(super) const DESCRIPTION_BYTES: usize = 792;

const KIND: usize = 256;
const REMOTE_PORT: usize = 264;
const LOCAL_PORT: usize = 268;
const VERSION: usize = 288;
const REMOTE_ADDRESS: usize = 296;
const LOCAL_ADDRESS: usize = 312;

const KIND_TCP: u32 = 2;
const VERSION_IPV4: u8 = 1;

/// Both ends of a connection, without what the kernel writes in different ways: IPv4 in the clothes of IPv6, and the
/// interface of an address that is only valid on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    local: SocketAddr,
    remote: SocketAddr,
}

impl Connection {
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let plain = |end: SocketAddr| SocketAddr::new(plain(end.ip()), end.port());
        Self {
            local: plain(local),
            remote: plain(remote),
        }
    }

    /// None for a socket of another kind.
    pub(super) fn read(description: &[u8; DESCRIPTION_BYTES]) -> Option<Self> {
        let kind = u32::from_ne_bytes(description.get(KIND..KIND + 4)?.try_into().ok()?);
        if kind != KIND_TCP {
            return None;
        }
        let is_ipv4 = description.get(VERSION)? & VERSION_IPV4 != 0;
        let end = |address: usize, port: usize| {
            let address: [u8; 16] = description.get(address..address + 16)?.try_into().ok()?;
            let address = match address {
                // Behind twelve bytes of nothing.
                [.., a, b, c, d] if is_ipv4 => Ipv4Addr::new(a, b, c, d).into(),
                address => Ipv6Addr::from(address).into(),
            };
            // An `int` that holds the two bytes as they are sent.
            let port = u16::from_be_bytes(description.get(port..port + 2)?.try_into().ok()?);
            Some(SocketAddr::new(address, port))
        };
        Some(Self::new(
            end(LOCAL_ADDRESS, LOCAL_PORT)?,
            end(REMOTE_ADDRESS, REMOTE_PORT)?,
        ))
    }
}

fn plain(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            let mut words = address.segments();
            // Here the kernel keeps the number of the interface.
            words[1] = 0;
            Ipv6Addr::from(words).into()
        }
        address => address,
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
