//! Finding the processes of one operation among all of the user's.

use std::collections::HashSet;

use rustix::process::{Pid, Signal};

use super::{
    kernel::{self, ProcessFacts},
    mark::Mark,
};

/// Rounds of a kill after which the rest is left to the next one. Each finds only what was born during the one before.
const MAX_ROUNDS: usize = 16;

/// The session of a process; 0 or less if it has none that can be seen, as the kernel's own have.
fn session_of(pid: Pid) -> i32 {
    // SAFETY: takes a number and returns one.
    unsafe { libc::getsid(pid.as_raw_nonzero().get()) }
}

/// Tells the processes of an operation from others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Membership {
    /// By the mark of their sandbox: all of them.
    Mark(Mark),
    /// Without a sandbox: those of the command's session, and those below it that can be seen to be.
    Session(Pid),
}

impl Membership {
    pub(super) fn members(self) -> Vec<ProcessFacts> {
        let ourselves = rustix::process::getpid();
        let mut all = kernel::processes();
        all.retain(|process| process.pid != ourselves);
        match self {
            Self::Mark(mark) => all.retain(|process| kernel::has_mark(process.pid, mark)),
            Self::Session(leader) => {
                let mut members: HashSet<i32> = all
                    .iter()
                    .filter(|process| {
                        process.pid == leader || session_of(process.pid) == leader.as_raw_nonzero().get()
                    })
                    .map(|process| process.pid.as_raw_nonzero().get())
                    .collect();
                // Until none is added: a child may be listed before its parent.
                loop {
                    let known = members.len();
                    let children = all.iter().filter(|process| members.contains(&process.parent));
                    let children: Vec<_> = children.map(|child| child.pid.as_raw_nonzero().get()).collect();
                    members.extend(children);
                    if members.len() == known {
                        break;
                    }
                }
                all.retain(|process| members.contains(&process.pid.as_raw_nonzero().get()));
            }
        }
        all
    }

    /// Nothing of it is left. Asked twice: what forks and ends while the answers come in is not in the first.
    pub(super) fn is_empty(self) -> bool {
        self.members().is_empty() && self.members().is_empty()
    }

    /// A pid may be another process's by the time it is signalled.
    fn still_holds(self, pid: Pid) -> bool {
        match self {
            Self::Mark(mark) => kernel::has_mark(pid, mark),
            Self::Session(_) => true,
        }
    }

    /// Signals all of them. Those that are born meanwhile are missed.
    pub(super) fn signal(self, signal: Signal) {
        for member in self.members() {
            rustix::process::kill_process(member.pid, signal).ok();
        }
    }

    /// Kills all of them. They are stopped first, until a round finds no new one, so that none forks away meanwhile.
    pub(super) fn kill(self) {
        let mut stopped = HashSet::new();
        for _ in 0..MAX_ROUNDS {
            let known = stopped.len();
            for member in self.members() {
                if stopped.insert(member.pid) {
                    rustix::process::kill_process(member.pid, Signal::STOP).ok();
                }
            }
            if stopped.len() == known {
                break;
            }
        }
        for pid in stopped {
            if self.still_holds(pid) {
                rustix::process::kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}
