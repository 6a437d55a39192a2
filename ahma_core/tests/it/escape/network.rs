//! Attempts over sockets.

use super::attempt::{Attempt, Net, Unwalled, attempt};

const CONNECT: &str =
    "python3 -c 'import os,socket; socket.create_connection((\"127.0.0.1\", int(os.environ[\"TCP\"])), 2)'";
const DATAGRAM: &str = "python3 -c 'import os,socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", int(os.environ[\"UDP\"])))'";
const MULTIPATH: &str = "python3 -c 'import os,socket; s=socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect((\"127.0.0.1\", int(os.environ[\"TCP\"])))'";
const FAST_OPEN: &str = "python3 -c 'import os,socket; s=socket.socket(); s.sendto(b\"x\", 0x20000000, (\"127.0.0.1\", int(os.environ[\"TCP\"])))'";
const FAST_OPEN_MESSAGE: &str = "python3 -c 'import os,socket; s=socket.socket(); s.sendmsg([b\"x\"], [], 0x20000000, (\"127.0.0.1\", int(os.environ[\"TCP\"])))'";

pub(super) const NETWORK: &[Attempt] = &[
    attempt("unix socket", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"DOORS\"]+\"/stream.sock\")'"),
    attempt("unix datagram", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", os.environ[\"DOORS\"]+\"/datagram.sock\")'"),
    attempt("unix datagram as a message", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b\"x\"], [], 0, os.environ[\"DOORS\"]+\"/datagram.sock\")'"),
    attempt("abstract socket", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(\"\\0\"+os.environ[\"ABSTRACT\"])'"),
    attempt("tcp with the network off", CONNECT).network(Net::Off),
    attempt("tcp by the shell with the network off", "exec 3<>/dev/tcp/127.0.0.1/$TCP").network(Net::Off),
    attempt("udp with the network off", DATAGRAM).network(Net::Off),
    attempt("multipath tcp with the network off", MULTIPATH).network(Net::Off).unwalled(Unwalled::Either),
    attempt("abstract socket with the network off", "python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(\"\\0\"+os.environ[\"ABSTRACT\"])'").network(Net::Off),
    attempt("tcp to a port that is not listed", CONNECT).network(Net::Ports),
    attempt("multipath tcp past the list", MULTIPATH).network(Net::Ports).unwalled(Unwalled::Either),
    attempt("fast open past the list", FAST_OPEN).network(Net::Ports).unwalled(Unwalled::Either),
    attempt("fast open in a message past the list", FAST_OPEN_MESSAGE).network(Net::Ports).unwalled(Unwalled::Either),
    attempt("udp past the list", DATAGRAM).network(Net::Ports),
    attempt("tcp out of an own loopback", CONNECT).network(Net::Loopback),
    attempt("udp out of an own loopback", DATAGRAM).network(Net::Loopback),
];
