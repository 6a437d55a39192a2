use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use super::{Socket, find};

fn inode_of(stream: &TcpStream) -> u32 {
    let found = rustix::fs::fstat(stream.as_fd()).unwrap();
    u32::try_from(found.st_ino).unwrap()
}

/// Listens at `at`, connects to `to`, and compares what the kernel says of the client's end.
#[track_caller]
fn check(at: &str, to: &str) {
    let listener = TcpListener::bind(at).unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = TcpStream::connect(format!("{to}:{port}")).unwrap();
    let (server, theirs) = listener.accept().unwrap();
    let ours = server.local_addr().unwrap();
    let expected = Socket {
        inode: inode_of(&client),
        uid: rustix::process::getuid().as_raw(),
    };
    assert_eq!(find(theirs, ours).unwrap(), Some(expected), "{to} at {at}");
    assert_ne!(inode_of(&server), expected.inode);
    drop(client);
    // A process that another test just forks may hold it a little longer.
    test_support::wait_for("the socket to be closed", || {
        let closed = find(theirs, ours).unwrap();
        closed.is_none_or(|socket| socket.inode == 0).then_some(())
    });
}

#[test]
fn the_other_end_of_a_connection_is_found() {
    check("127.0.0.1:0", "127.0.0.1");
    check("[::1]:0", "[::1]");
    // One listener for both kinds sees IPv4 clients at addresses that look like IPv6.
    check("[::]:0", "127.0.0.1");
    check("[::]:0", "[::ffff:127.0.0.1]");
}

#[test]
fn who_is_not_here_is_not_found() {
    let elsewhere: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let here: SocketAddr = "127.0.0.1:3000".parse().unwrap();
    assert_eq!(find(elsewhere, here).unwrap(), None);
}
