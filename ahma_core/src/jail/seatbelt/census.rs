//! Finding the processes of one operation among all of the user's.

use std::collections::HashSet;

use rustix::process::{Pid, Signal};

use super::{
    kernel::{self, ProcessFacts},
    mark::Mark,
};

/// Rounds of a kill after which the rest is left to the next one. Each finds only what was born during the one before.
const MAX_ROUNDS: usize = 16;

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// The processes of a session, and its leader wherever it is.
fn session(leader: i32, all: &[ProcessFacts]) -> HashSet<i32> {
    // SAFETY: takes a number and returns one: 0 or less for a session that cannot be seen, as the kernel's own.
    let session_of = |pid| unsafe { libc::getsid(pid) };
    all.iter()
        .map(|process| number(process.pid))
        .filter(|pid| *pid == leader || session_of(*pid) == leader)
        .collect()
}

fn with_descendants(mut members: HashSet<i32>, all: &[ProcessFacts]) -> HashSet<i32> {
    // Until none is added: a child may be listed before its parent.
    loop {
        let known = members.len();
        let parents = members.clone();
        let children = all.iter().filter(|process| parents.contains(&process.parent));
        members.extend(children.map(|child| number(child.pid)));
        if members.len() == known {
            return members;
        }
    }
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
                let in_session = session(number(leader), &all);
                let members = with_descendants(in_session, &all);
                all.retain(|process| members.contains(&number(process.pid)));
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
