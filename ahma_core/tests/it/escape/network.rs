//! Attempts over sockets.

use super::attempt::{Attempt, Needs, Net, Unconfined, attempt};

const CONNECT: &str =
    "python3 -c 'import os,socket; socket.create_connection((\"127.0.0.1\", int(os.environ[\"TCP\"])), 2)'";
const DATAGRAM: &str = "python3 -c 'import os,socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", int(os.environ[\"UDP\"])))'";
const MULTIPATH: &str = "python3 -c 'import os,socket; s=socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect((\"127.0.0.1\", int(os.environ[\"TCP\"])))'";
const FAST_OPEN: &str = "python3 -c 'import os,socket; s=socket.socket(); s.sendto(b\"x\", 0x20000000, (\"127.0.0.1\", int(os.environ[\"TCP\"])))'";
const FAST_OPEN_MESSAGE: &str = "python3 -c 'import os,socket; s=socket.socket(); s.sendmsg([b\"x\"], [], 0x20000000, (\"127.0.0.1\", int(os.environ[\"TCP\"])))'";

/// An end of a pair is a socket too.
const PAIR: &str = "python3 - <<'END'
import os, socket
door = os.environ['DOORS'] + '/datagram.sock'
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC):
    for send in (lambda s: s.sendto(b'x', door), lambda s: s.sendmsg([b'x'], [], 0, door), lambda s: (s.connect(door), s.send(b'x'))):
        try: send(socket.socketpair(socket.AF_UNIX, kind)[0])
        except OSError as e: print(e)
END";
/// Connected already, and so it must stay.
const PAIR_OF_STREAMS: &str = "python3 - <<'END'
import os, socket
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for how in (None, socket.SHUT_RDWR):
        try:
            a, b = socket.socketpair(socket.AF_UNIX, kind)
            if how is not None: a.shutdown(how); b.close()
            a.connect(os.environ['DOORS'] + '/stream.sock')
        except OSError as e: print(e)
END";

const NETLINK: &str = "python3 -c 'import socket; s=socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((0, 0)); print(\"asked-the-kernel\")'";
const LISTEN: &str =
    "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 0)); print(\"listens\")'";

pub(super) const NETWORK: &[Attempt] = &[
    attempt("unix socket", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"DOORS\"]+\"/stream.sock\")'"),
    attempt("unix datagram", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", os.environ[\"DOORS\"]+\"/datagram.sock\")'"),
    attempt("unix datagram as a message", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b\"x\"], [], 0, os.environ[\"DOORS\"]+\"/datagram.sock\")'"),
    attempt("unix datagram from a pair", PAIR),
    attempt("unix datagram from a pair with the network off", PAIR).network(Net::Off),
    attempt("unix datagram from a pair past the list", PAIR).network(Net::Ports),
    attempt("unix stream from a pair", PAIR_OF_STREAMS).unconfined(Unconfined::Contained),
    attempt("abstract socket", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(\"\\0\"+os.environ[\"ABSTRACT\"])'"),
    attempt("tcp with the network off", CONNECT).network(Net::Off),
    attempt("tcp by the shell with the network off", "exec 3<>/dev/tcp/127.0.0.1/$TCP").network(Net::Off),
    attempt("udp with the network off", DATAGRAM).network(Net::Off),
    attempt("multipath tcp with the network off", MULTIPATH).network(Net::Off).unconfined(Unconfined::Either),
    attempt("abstract socket with the network off", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(\"\\0\"+os.environ[\"ABSTRACT\"])'").network(Net::Off),
    attempt("tcp to a port that is not listed", CONNECT).network(Net::Ports),
    attempt("multipath tcp past the list", MULTIPATH).network(Net::Ports).unconfined(Unconfined::Either),
    attempt("fast open past the list", FAST_OPEN).network(Net::Ports).unconfined(Unconfined::Either),
    attempt("fast open in a message past the list", FAST_OPEN_MESSAGE).network(Net::Ports).unconfined(Unconfined::Either),
    attempt("udp past the list", DATAGRAM).network(Net::Ports),
    attempt("a packet made by hand", "python3 -c 'import os,socket; s=socket.socket(socket.AF_INET, socket.SOCK_RAW, 17); p=int(os.environ[\"UDP\"]); s.sendto(p.to_bytes(2,\"big\")*2+b\"\\0\\x09\\0\\0x\", (\"127.0.0.1\", 0))'").needs(Needs::Root),
    attempt("everyone's packets", "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300); print(\"listens-to-all\")'")
        .says("listens-to-all\n")
        .needs(Needs::Root),
    attempt("the hypervisor", "python3 -c 'import socket; socket.socket(socket.AF_VSOCK); print(\"reached-vsock\")'")
        .says("reached-vsock\n")
        .unconfined(Unconfined::Either).only_linux(),
    attempt("the kernel's firewall", "python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12); print(\"reached-netfilter\")'")
        .says("reached-netfilter\n")
        .unconfined(Unconfined::Either).only_linux(),
    attempt("the kernel's crypto", "python3 -c 'import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET); print(\"reached-crypto\")'")
        .says("reached-crypto\n")
        .unconfined(Unconfined::Either),
    attempt("an interface's settings", "python3 -c 'import fcntl,socket,struct; fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8943, struct.pack(\"16si12x\", b\"lo\", 1013))'")
        .needs(Needs::Root)
        .after("test $(cat /sys/class/net/lo/tx_queue_len) != 1013 || { python3 -c 'import fcntl,socket,struct; fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8943, struct.pack(\"16si12x\", b\"lo\", 1000))'; touch $OUT/set; }").only_linux(),
    attempt("netlink with the network off", NETLINK).network(Net::Off).says("asked-the-kernel\n").only_linux(),
    attempt("netlink past the list", NETLINK).network(Net::Ports).says("asked-the-kernel\n").only_linux(),
    attempt("a raw socket past the list", "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print(\"made-raw\")'")
        .network(Net::Ports)
        .says("made-raw\n")
        .needs(Needs::Root),
    attempt("listen with the network off", LISTEN).network(Net::Off).says("listens\n"),
    attempt("listen although only connections are listed", LISTEN).network(Net::Ports).says("listens\n"),
    attempt("listen without a bind", "python3 -c 'import socket; s=socket.socket(); s.listen(); print(\"listens\")'").network(Net::Ports).says("listens\n").only_linux(),
    attempt("tcp by version six past the list", "python3 -c 'import os,socket; socket.create_connection((\"::ffff:127.0.0.1\", int(os.environ[\"TCP\"])), 2)'").network(Net::Ports),
    attempt("tcp out of an own loopback", CONNECT).network(Net::Loopback).only_linux(),
    attempt("udp out of an own loopback", DATAGRAM).network(Net::Loopback).only_linux(),
];
