//! Rules for sockets: families, protocols and ways around the port list.

use super::{
    call_rules::{CallRules, differs, equals, masked},
    deny_list::UnixSockets,
};
use crate::sandbox::Network;

const UNIX: u64 = libc::AF_UNIX as u64;
const INET: u64 = libc::AF_INET as u64;
const INET6: u64 = libc::AF_INET6 as u64;
const NETLINK: u64 = libc::AF_NETLINK as u64;

/// Denies the sockets that a network mode does not need.
pub(super) fn deny_sockets(denied: &mut CallRules, network: &Network, unix_sockets: UnixSockets) {
    deny_pairs(denied, unix_sockets);
    if unix_sockets == UnixSockets::Denied {
        denied.add(libc::SYS_socket, &[equals(0, UNIX)]);
    }
    match network {
        Network::Off => denied.add(libc::SYS_socket, &[differs(0, UNIX)]),
        Network::Ports(_) => deny_all_but_tcp(denied),
        // The internet, and netlink's protocol 0, which lists interfaces and routes. Vsock reaches the hypervisor, packet
        // sockets see all traffic, and the other families are rarely maintained kernel code.
        Network::Open | Network::Loopback => {
            let other_family = [
                differs(0, INET),
                differs(0, INET6),
                differs(0, NETLINK),
                differs(0, UNIX),
            ];
            denied.add(libc::SYS_socket, &other_family);
            let other_netlink = [equals(0, NETLINK), differs(2, libc::NETLINK_ROUTE as u64)];
            denied.add(libc::SYS_socket, &other_netlink);
        }
    }
}

/// Denies pairs that are more than a pipe: those of another family, and those of datagrams, whose ends can send to any
/// path socket or connect to it. Streams and sequenced packets stay connected to each other.
fn deny_pairs(denied: &mut CallRules, unix_sockets: UnixSockets) {
    const TYPE_BITS: u64 = 0xf;
    denied.add(libc::SYS_socketpair, &[differs(0, UNIX)]);
    if unix_sockets == UnixSockets::Denied {
        // To the unix family a raw socket is one of datagrams.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            denied.add(libc::SYS_socketpair, &[masked(1, TYPE_BITS, kind as u64)]);
        }
    }
}

/// A port list is ineffective if another protocol, MPTCP or Fast Open evades it.
fn deny_all_but_tcp(denied: &mut CallRules) {
    const TCP: u64 = libc::IPPROTO_TCP as u64;
    const FAST_OPEN: u64 = libc::MSG_FASTOPEN as u64;
    for family in [INET, INET6] {
        // Of all types only SOCK_STREAM, which is 1, has none of these bits.
        for bit in [2, 4, 8] {
            denied.add(libc::SYS_socket, &[equals(0, family), masked(1, bit, bit)]);
        }
        denied.add(
            libc::SYS_socket,
            &[equals(0, family), differs(2, 0), differs(2, TCP)],
        );
    }
    // Every other family but unix: netlink, packet, vsock, bluetooth.
    denied.add(
        libc::SYS_socket,
        &[differs(0, INET), differs(0, INET6), differs(0, UNIX)],
    );
    for (call, flags_index) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        denied.add(call, &[masked(flags_index, FAST_OPEN, FAST_OPEN)]);
    }
    // Listening without a bind takes any free port, which no rule sees.
    denied.add_all(&[libc::SYS_listen]);
    // An upper layer protocol such as SMC makes a socket that the port rules do not know.
    denied.add(
        libc::SYS_setsockopt,
        &[equals(1, TCP), equals(2, libc::TCP_ULP as u64)],
    );
}
