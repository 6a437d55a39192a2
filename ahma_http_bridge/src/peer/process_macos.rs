//! Processes as the kernel of macOS reports them: what they hold, their sandbox, and their ancestors.
//!
//! There is no question for the holder of a connection; each process is asked for its sockets, which it tells only its own
//! user and root. Another user's program stays unidentified.

use std::io;
use std::net::SocketAddr;

use ahma_common::contract::{COMMAND_MARK_ALLOWED, COMMAND_MARK_DENIED};
use ahma_common::darwin::{self, Connection, ProcessFacts};

/// More ancestors than any process has; the walk ends even if a number is used again meanwhile.
const MAX_ANCESTORS: usize = 1_000;

#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    facts: ProcessFacts,
}

/// The other end's connection.
#[derive(Debug)]
pub(super) struct Link(Connection);

impl Link {
    pub(super) fn find(theirs: SocketAddr, ours: SocketAddr) -> io::Result<Option<Self>> {
        Ok(Some(Self(Connection::new(theirs, ours))))
    }

    /// Not known before the holder is.
    pub(super) fn is_of_another_than(&self, _uid: u32) -> bool {
        false
    }
}

impl Process {
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).map_err(io::Error::other)?;
        let facts = darwin::facts(number).ok_or_else(ended)?;
        Ok(Self { pid, facts })
    }

    pub(super) fn all() -> io::Result<Vec<u32>> {
        let all = darwin::processes(None).into_iter();
        Ok(all.filter_map(|pid| u32::try_from(pid).ok()).collect())
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn holds_as(&self, descriptor: u32, link: &Link) -> bool {
        let held = i32::try_from(descriptor)
            .ok()
            .and_then(|descriptor| darwin::connection(self.facts.pid, descriptor));
        held == Some(link.0) && self.is_the_same()
    }

    /// The number under which it holds the socket.
    pub(super) fn descriptor_of(&self, link: &Link) -> Option<u32> {
        darwin::socket_descriptors(self.facts.pid)
            .into_iter()
            .filter_map(|descriptor| u32::try_from(descriptor).ok())
            .find(|descriptor| self.holds_as(*descriptor, link))
    }

    /// True if it is a command, of this bridge, whose process id is `bridge`, or of another server.
    pub(super) fn is_command(&self, bridge: u32) -> io::Result<bool> {
        if self.pid == bridge {
            return Ok(false);
        }
        let is_marked = darwin::has_mark(self.facts.pid, COMMAND_MARK_ALLOWED, COMMAND_MARK_DENIED)
            .ok_or_else(|| io::Error::other("the kernel does not tell sandboxes apart"))?;
        // Without a sandbox there is no mark. Such a command is recognised as long as its parents live.
        let is_command = is_marked || self.is_below(bridge)?;
        self.is_the_same().then_some(is_command).ok_or_else(ended)
    }

    fn is_below(&self, bridge: u32) -> io::Result<bool> {
        let mut parent = self.facts.parent;
        for _ in 0..MAX_ANCESTORS {
            if u32::try_from(parent) == Ok(bridge) {
                return Ok(true);
            }
            if parent <= 1 {
                return Ok(false);
            }
            parent = darwin::facts(parent).ok_or_else(ended)?.parent;
        }
        Err(io::Error::other("the ancestors of a process have no end"))
    }

    /// Its number has not been given to another.
    fn is_the_same(&self) -> bool {
        darwin::facts(self.facts.pid).is_some_and(|now| now.started == self.facts.started)
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the process has ended")
}
