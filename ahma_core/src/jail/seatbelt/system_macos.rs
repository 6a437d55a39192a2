//! What the jail asks of macOS itself, whatever the tier. `linux/system.rs` answers to the same names on Linux.

use std::{collections::HashSet, io, os::fd::OwnedFd};

use ahma_common::darwin;
use rustix::process::Pid;

pub(crate) use crate::jail::wire_stream::{pair, receive, receive_short, send};
use crate::jail::{ProcessUsage, prepared::PreparedSandbox, streams::Streams, wire::Start};

/// The descriptor that tells of the end of children: a kqueue. It hears of signals that are blocked; it is not inherited by fork.
pub(in crate::jail) mod child_ended {
    use std::{io, os::fd::OwnedFd, time::Duration};

    use rustix::event::kqueue::{Event, EventFilter, EventFlags, kevent, kqueue};

    pub(in crate::jail) fn open() -> io::Result<OwnedFd> {
        let queue = kqueue()?;
        rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
        let filter = EventFilter::Signal {
            signal: rustix::process::Signal::CHILD,
            times: 0,
        };
        let change = Event::new(filter, EventFlags::ADD | EventFlags::CLEAR, std::ptr::null_mut());
        // SAFETY: the change names no descriptor.
        unsafe { kevent(&queue, &[change], &mut Vec::<Event>::new(), Some(Duration::ZERO)) }?;
        Ok(queue)
    }

    /// Takes the events that have come.
    pub(in crate::jail) fn forget(descriptor: &OwnedFd) {
        let mut events = Vec::<Event>::with_capacity(1);
        // SAFETY: nothing is changed.
        unsafe { kevent(descriptor, &[], &mut events, Some(Duration::ZERO)) }.ok();
    }
}

/// Supervisors that share the memory of the jail. There are none here.
#[derive(Debug)]
pub(in crate::jail) enum LightSupervisors {}

impl LightSupervisors {
    pub(in crate::jail) fn of(_: &PreparedSandbox, _: &OwnedFd, _: &OwnedFd) -> Option<Self> {
        None
    }

    pub(in crate::jail) fn can_start(&self, _: Start) -> bool {
        match *self {}
    }

    pub(in crate::jail) fn start(&mut self, _: &OwnedFd, _: Streams) -> io::Result<Pid> {
        match *self {}
    }

    pub(in crate::jail) fn ended(&mut self, _: Pid) {
        match *self {}
    }
}

/// A process and all below it. One that has left its parents is not among them.
pub(in crate::jail) fn with_descendants(first: Pid) -> HashSet<i32> {
    let user = rustix::process::getuid();
    let all = darwin::processes((!user.is_root()).then_some(user.as_raw()));
    let all: Vec<_> = all.into_iter().filter_map(darwin::facts).collect();
    let tree = darwin::with_descendants(first.as_raw_nonzero().get(), &all);
    tree.into_iter().collect()
}

/// Usage of one process; none if it is gone.
pub(in crate::jail) fn usage_of(pid: i32) -> Option<ProcessUsage> {
    let darwin::ProcessUsage { memory_bytes, cpu } = darwin::usage(pid)?;
    Some(ProcessUsage { cpu, memory_bytes })
}
