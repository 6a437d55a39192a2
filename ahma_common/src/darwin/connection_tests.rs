use std::mem::offset_of;

use super::*;

// As in `sys/proc_info.h`; only what stands before or in what is read.

#[repr(C)]
struct ProcFileinfo {
    openflags: u32,
    status: u32,
    offset: i64,
    kind: i32,
    guardflags: u32,
}

#[repr(C)]
struct VinfoStat {
    dev: u32,
    mode: u16,
    nlink: u16,
    ino: u64,
    uid: u32,
    gid: u32,
    times: [i64; 8],
    size: i64,
    blocks: i64,
    blksize: i32,
    flags: u32,
    r#gen: u32,
    rdev: u32,
    qspare: [i64; 2],
}

#[repr(C)]
struct SockbufInfo {
    counts: [u32; 5],
    flags: i16,
    timeo: i16,
}

#[repr(C)]
struct InSockinfo {
    fport: i32,
    lport: i32,
    gencnt: u64,
    flags: u32,
    flow: u32,
    vflag: u8,
    ip_ttl: u8,
    rfu_1: u32,
    faddr: [u32; 4],
    laddr: [u32; 4],
}

/// The largest kind of socket decides about the length.
#[repr(C)]
struct UnSockinfo {
    conn: [u64; 2],
    names: [[u8; 255]; 2],
}

#[repr(C)]
union Protocol {
    tcp: std::mem::ManuallyDrop<InSockinfo>,
    unix: std::mem::ManuallyDrop<UnSockinfo>,
}

#[repr(C)]
struct SocketFdinfo {
    file: ProcFileinfo,
    stat: VinfoStat,
    so: u64,
    pcb: u64,
    kinds: [i32; 3],
    shorts: [i16; 8],
    oobmark: u32,
    rcv: SockbufInfo,
    snd: SockbufInfo,
    kind: i32,
    rfu_1: u32,
    protocol: Protocol,
}

#[test]
fn the_offsets_are_those_of_the_header() {
    assert_eq!(size_of::<SocketFdinfo>(), DESCRIPTION_BYTES);
    assert_eq!(offset_of!(SocketFdinfo, kind), KIND);
    let protocol = offset_of!(SocketFdinfo, protocol);
    assert_eq!(protocol + offset_of!(InSockinfo, fport), REMOTE_PORT);
    assert_eq!(protocol + offset_of!(InSockinfo, lport), LOCAL_PORT);
    assert_eq!(protocol + offset_of!(InSockinfo, vflag), VERSION);
    assert_eq!(protocol + offset_of!(InSockinfo, faddr), REMOTE_ADDRESS);
    assert_eq!(protocol + offset_of!(InSockinfo, laddr), LOCAL_ADDRESS);
}

fn description(
    kind: u32,
    version: u8,
    local: ([u8; 16], u16),
    remote: ([u8; 16], u16),
) -> [u8; DESCRIPTION_BYTES] {
    let mut bytes = [0; DESCRIPTION_BYTES];
    bytes[KIND..KIND + 4].copy_from_slice(&kind.to_ne_bytes());
    bytes[VERSION] = version;
    for (address, port, end) in [
        (LOCAL_ADDRESS, LOCAL_PORT, local),
        (REMOTE_ADDRESS, REMOTE_PORT, remote),
    ] {
        bytes[address..address + 16].copy_from_slice(&end.0);
        bytes[port..port + 2].copy_from_slice(&end.1.to_be_bytes());
    }
    bytes
}

fn v6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

#[test]
fn both_ends_are_read_and_compared_as_a_listener_sees_them() {
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    for (version, local, remote, seen_local, seen_remote) in [
        (
            1,
            "::127.0.0.1",
            "::127.0.0.1",
            "127.0.0.1:40000",
            "127.0.0.1:3000",
        ),
        // The listener may speak both.
        (
            1,
            "::127.0.0.1",
            "::127.0.0.1",
            "[::ffff:127.0.0.1]:40000",
            "[::ffff:127.0.0.1]:3000",
        ),
        (
            2,
            "::ffff:127.0.0.1",
            "::ffff:127.0.0.1",
            "127.0.0.1:40000",
            "127.0.0.1:3000",
        ),
        (2, "::1", "::1", "[::1]:40000", "[::1]:3000"),
        (
            2,
            "fe80:4::9",
            "fe80:4::8",
            "[fe80::9%4]:40000",
            "[fe80::8%4]:3000",
        ),
    ] {
        let read = Connection::read(&description(2, version, (v6(local), 40000), (v6(remote), 3000)));
        assert_eq!(
            read,
            Some(Connection::new(at(seen_local), at(seen_remote))),
            "{seen_local}"
        );
        // The server's own end of the same connection is another socket.
        assert_ne!(read, Some(Connection::new(at(seen_remote), at(seen_local))));
    }
}

#[test]
fn a_socket_of_another_kind_is_no_connection() {
    let end = (v6("::1"), 1);
    for kind in [0, 1, 3] {
        assert_eq!(Connection::read(&description(kind, 2, end, end)), None);
    }
}
