//! Processes as `/proc` shows them: what they hold, and their ancestors.
//!
//! A process is kept as its open directory, which goes dead with it: nothing here is fooled by a number that is used
//! again. `procfs` keeps such a directory too, but reads and parses every file whole; here reads are bounded.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use ahma_common::contract::JAIL_ROLE;
use rustix::fs::{Dir, Mode, OFlags};

use super::socket::{self, Socket};

/// The first process of this machine or container.
const INIT: u32 = 1;

#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    directory: OwnedFd,
}

/// The link of a descriptor of one socket.
#[derive(Debug)]
pub(super) struct Link {
    text: String,
    uid: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ancestor {
    pid: u32,
    is_jail: bool,
}

impl Link {
    /// The other end's; none if every descriptor of it is closed.
    pub(super) fn find(theirs: SocketAddr, ours: SocketAddr) -> io::Result<Option<Self>> {
        let found = socket::find(theirs, ours)?.filter(|socket| socket.inode != 0);
        Ok(found.map(Self::of))
    }

    fn of(socket: Socket) -> Self {
        Self {
            text: format!("socket:[{}]", socket.inode),
            uid: socket.uid,
        }
    }

    pub(super) fn is_of_another_than(&self, uid: u32) -> bool {
        self.uid != uid
    }
}

impl Process {
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty())?;
        Ok(Self { pid, directory })
    }

    /// All visible processes, the newest first: a client that connects has often just started.
    pub(super) fn all() -> io::Result<Vec<u32>> {
        let mut pids: Vec<u32> = std::fs::read_dir("/proc")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        let newest = newest().unwrap_or(u32::MAX);
        // Numbers begin again when they have all been used, so a higher one may be older.
        pids.sort_unstable_by_key(|pid| (*pid > newest, Reverse(*pid)));
        Ok(pids)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn holds_as(&self, descriptor: u32, link: &Link) -> bool {
        let mut target = [0_u8; 64];
        rustix::fs::readlinkat_raw(&self.directory, format!("fd/{descriptor}"), &mut target[..])
            .is_ok_and(|length| target.get(..length) == Some(link.text.as_bytes()))
    }

    /// The number under which it holds the socket.
    pub(super) fn descriptor_of(&self, link: &Link) -> Option<u32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let table = rustix::fs::openat(&self.directory, "fd", flags, Mode::empty()).ok()?;
        Dir::new(table)
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok())
            .find(|descriptor| self.holds_as(*descriptor, link))
    }

    /// True if it is a command: of this bridge, whose process id is `bridge`, or of another server.
    pub(super) fn is_command(&self, bridge: u32) -> io::Result<bool> {
        if self.pid == bridge {
            return Ok(false);
        }
        let line = self.line()?;
        if line.iter().any(|ancestor| ancestor.pid == bridge) {
            return Ok(true);
        }
        let mut jails = line.iter().filter(|ancestor| ancestor.is_jail).peekable();
        if jails.peek().is_none() {
            return Ok(false);
        }
        // Bridge and client may both run as commands; neither is confined against the other.
        let ours = Self::open(bridge)?.line()?;
        Ok(jails.any(|jail| !ours.iter().any(|ancestor| ancestor.pid == jail.pid)))
    }

    /// Itself and its ancestors.
    fn line(&self) -> io::Result<Vec<Ancestor>> {
        let mut line = vec![self.as_ancestor()?];
        let mut above: Option<Self> = None;
        loop {
            let lowest = above.as_ref().unwrap_or(self);
            match lowest.parent_pid()? {
                0 => return Ok(line),
                // Readable or not, it is the end, and no command.
                INIT => {
                    line.push(Ancestor {
                        pid: INIT,
                        is_jail: false,
                    });
                    return Ok(line);
                }
                _ => {
                    let parent = lowest.parent()?;
                    line.push(parent.as_ancestor()?);
                    above = Some(parent);
                }
            }
        }
    }

    fn as_ancestor(&self) -> io::Result<Ancestor> {
        let words = self.read("cmdline")?;
        // Each command runs below a process of this role, even when its server has died.
        let is_jail = words.split(|byte| *byte == 0).nth(1) == Some(JAIL_ROLE.as_bytes());
        Ok(Ancestor {
            pid: self.pid,
            is_jail,
        })
    }

    fn parent(&self) -> io::Result<Self> {
        loop {
            let pid = self.parent_pid()?;
            let parent = Self::open(pid);
            // A parent that ended meanwhile has left its number to a stranger, and this process to another parent.
            if self.parent_pid()? == pid {
                return parent;
            }
        }
    }

    fn parent_pid(&self) -> io::Result<u32> {
        let stat = self.read("stat")?;
        // The name before may have any character in it.
        let after_name = stat.rsplit(|byte| *byte == b')').next().unwrap_or_default();
        std::str::from_utf8(after_name)
            .ok()
            .and_then(|fields| fields.split_ascii_whitespace().nth(1)?.parse().ok())
            .ok_or_else(|| io::Error::other("the parent of a process cannot be read"))
    }

    /// The beginning of a file about it.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = rustix::fs::openat(
            &self.directory,
            name,
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut text = Vec::new();
        File::from(file).take(4096).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// The number that was given away last.
fn newest() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
