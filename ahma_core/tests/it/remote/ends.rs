//! The other end: our own program over HTTP, which can be killed and restarted, and a wire that can be cut.

use std::{
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
};

use rustix::process::Signal;
use test_support::{HttpServer, Workspace, quiet_port};

use crate::session::options;

/// `ahma_mcp --mode http` in a project of its own.
pub(super) struct Bridge {
    pub(super) workspace: Workspace,
    pub(super) server: HttpServer,
    /// A server with a sandbox hides what it holds from other programs of an ordinary user, and so could not be told
    /// from a command. What holds the far end of a wire is the test.
    wire: Wire,
}

impl Bridge {
    #[track_caller]
    pub(super) fn start() -> Self {
        Self::start_in(Workspace::new(), &[])
    }

    #[track_caller]
    pub(super) fn start_in(workspace: Workspace, flags: &[&str]) -> Self {
        // Its port stays free while the server is away.
        let port = quiet_port().to_string();
        let listening = ["--mode", "http", "--http-port", &port];
        let server = HttpServer::start(&options(&workspace).args(listening).args(flags));
        let wire = Wire::to(server.address().parse().expect("an address"));
        Self {
            workspace,
            server,
            wire,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address().parse().expect("an address")
    }

    /// The address by which others find it.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.wire.address)
    }

    /// As the machine's out-of-memory killer would.
    #[track_caller]
    pub(super) fn kill(&mut self) {
        self.server.process().signal(Signal::KILL);
        self.server.process().wait();
    }

    /// The next life, at the same address.
    #[track_caller]
    pub(super) fn restart(&mut self) {
        let port = self.address().port().to_string();
        let listening = ["--mode", "http", "--http-port", &port];
        self.server = HttpServer::start(&options(&self.workspace).args(listening));
    }
}

/// An address without a listener.
pub(super) fn dead_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], quiet_port()))
}

/// A wire to a server, which can be cut.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    /// Connections that were dropped because the wire was cut.
    refused: Arc<AtomicU32>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    pub(super) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let wire = Self {
            address: listener.local_addr().expect("bound"),
            is_cut: Arc::default(),
            refused: Arc::default(),
            connections: Arc::default(),
        };
        let (is_cut, connections) = (wire.is_cut.clone(), wire.connections.clone());
        let refused = wire.refused.clone();
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if is_cut.load(Ordering::SeqCst) {
                    refused.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                let Ok(far) = TcpStream::connect(server) else {
                    continue;
                };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().expect("open"), to.try_clone().expect("open"));
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
                connections.lock().expect("not poisoned").extend([near, far]);
            }
        });
        wire
    }

    /// Breaks every connection and drops new ones.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for connection in self.connections.lock().expect("not poisoned").drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn refused(&self) -> u32 {
        self.refused.load(Ordering::SeqCst)
    }

    pub(super) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}
