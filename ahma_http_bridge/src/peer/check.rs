//! Accepts the connections of all processes but commands: asks the kernel for the other end's socket and looks for the
//! process that holds it.
//!
//! The holder must be found and must not be a command. That a command is *not* found holding it proves nothing: a
//! socket can live in a message on its way between two processes, in a call that waits, in a mapping. Each connection
//! is judged once, before a byte of it is read.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use ahma_common::loopback::is_loopback;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::PeerRejected;
use super::process::{Link, Process};

/// Clients that are looked at first. Each costs a descriptor, and a new client the time to check all of them.
const MAX_KNOWN: usize = 8;
/// A client's next connection mostly has the number of one that it just closed, or one of the next.
const NUMBERS_BEFORE: u32 = 2;
const NUMBERS_AFTER: u32 = 8;

#[derive(Debug)]
pub(crate) struct PeerCheck {
    bridge: u32,
    uid: u32,
    others: OtherUsers,
    /// Clients that were accepted lately, the latest first.
    known: Mutex<Vec<KnownClient>>,
    /// One search of the whole machine at a time: a command that connects over and over must not have all threads.
    search: Semaphore,
}

/// Processes of other users of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherUsers {
    Accepted,
    /// All but root, whom nothing keeps out.
    Refused,
}

/// The user who may do everything.
const ROOT: u32 = 0;

#[derive(Debug)]
struct KnownClient {
    process: Process,
    descriptor: u32,
}

/// Result of a first look, without a search.
#[derive(Debug)]
enum Glance {
    Accepted,
    Rejected(PeerRejected),
    /// A process of our user holds this socket.
    Search(Link),
}

/// Relation of a process to a socket.
#[derive(Debug)]
enum Holder {
    Not,
    Command,
    Client,
}

impl PeerCheck {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(OtherUsers::Accepted)
    }

    /// For what is meant for one person: a link may be seen in the list of processes.
    pub(crate) fn of_one_user() -> Arc<Self> {
        Self::with(OtherUsers::Refused)
    }

    fn with(others: OtherUsers) -> Arc<Self> {
        Arc::new(Self {
            others,
            bridge: std::process::id(),
            uid: rustix::process::geteuid().as_raw(),
            known: Mutex::default(),
            search: Semaphore::new(1),
        })
    }

    /// Refuses a connection from `theirs` that may not use the bridge.
    pub(crate) async fn judge(
        self: &Arc<Self>,
        theirs: SocketAddr,
        ours: SocketAddr,
    ) -> Result<(), PeerRejected> {
        let link = match self.glance(theirs, ours) {
            Glance::Accepted => return Ok(()),
            Glance::Rejected(reason) => return Err(reason),
            Glance::Search(link) => link,
        };
        let _turn = self
            .search
            .acquire()
            .await
            .map_err(|_| PeerRejected::Unidentified)?;
        let keeper = Arc::clone(self);
        tokio::task::spawn_blocking(move || keeper.search(&link))
            .await
            .unwrap_or(Err(PeerRejected::Unidentified))
    }

    /// Takes some hundredths of a millisecond and never waits, so it needs no thread of its own.
    fn glance(&self, theirs: SocketAddr, ours: SocketAddr) -> Glance {
        if !is_here(theirs) {
            // Another machine: no command of ours.
            return Glance::Accepted;
        }
        match Link::find(theirs, ours) {
            // Closed already, perhaps with a request left behind.
            Ok(None) => Glance::Rejected(PeerRejected::Unidentified),
            Ok(Some(link))
                if self.others == OtherUsers::Refused
                    && link.is_of_another_than(self.uid)
                    && link.is_of_another_than(ROOT) =>
            {
                Glance::Rejected(PeerRejected::OtherUser)
            }
            // A command cannot become another user.
            Ok(Some(link)) if link.is_of_another_than(self.uid) => Glance::Accepted,
            Ok(Some(link)) if self.knows_holder(&link) => Glance::Accepted,
            Ok(Some(link)) => Glance::Search(link),
            Err(error) => {
                tracing::warn!(%error, "the kernel does not say who connects");
                Glance::Rejected(PeerRejected::Unidentified)
            }
        }
    }

    fn knows_holder(&self, link: &Link) -> bool {
        let mut known = self.known.lock();
        let found = known.iter().enumerate().find_map(|(place, client)| {
            let first = client.descriptor.saturating_sub(NUMBERS_BEFORE);
            let last = client.descriptor.saturating_add(NUMBERS_AFTER);
            let descriptor = (first..=last).find(|descriptor| client.process.holds_as(*descriptor, link))?;
            Some((place, descriptor))
        });
        if let Some((place, descriptor)) = found {
            known[..=place].rotate_right(1);
            known[0].descriptor = descriptor;
        }
        found.is_some()
    }

    fn search(&self, link: &Link) -> Result<(), PeerRejected> {
        let known: Vec<u32> = self
            .known
            .lock()
            .iter()
            .map(|client| client.process.pid())
            .collect();
        let all = Process::all().map_err(|_| PeerRejected::Unidentified)?;
        let mut reason = PeerRejected::Unidentified;
        for pid in known.into_iter().chain(all) {
            match self.look_at(pid, link) {
                Ok(Holder::Client) => return Ok(()),
                // Perhaps the socket is a client's all the same: if the client is this very process, each child has it
                // for a moment before it becomes another program.
                Ok(Holder::Command) => reason = PeerRejected::Command,
                Ok(Holder::Not) => {}
                // It has ended or is hidden from us. If it held the socket, another process does or none.
                Err(error) => tracing::trace!(pid, %error, "not looked at"),
            }
        }
        Err(reason)
    }

    fn look_at(&self, pid: u32, link: &Link) -> io::Result<Holder> {
        let process = Process::open(pid)?;
        let Some(descriptor) = process.descriptor_of(link) else {
            return Ok(Holder::Not);
        };
        if process.is_command(self.bridge)? {
            return Ok(Holder::Command);
        }
        let mut known = self.known.lock();
        known.retain(|client| client.process.pid() != pid);
        known.truncate(MAX_KNOWN - 1);
        known.insert(0, KnownClient { process, descriptor });
        Ok(Holder::Client)
    }
}

/// True for an address of this machine, which is one that can be bound. A connection to the loopback address may
/// well come from another of its addresses.
fn is_here(address: SocketAddr) -> bool {
    let mut address = address;
    address.set_port(0);
    let bound = || UdpSocket::bind(address);
    is_loopback(address.ip()) || !bound().is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}
