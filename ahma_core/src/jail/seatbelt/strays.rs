//! What a killed supervisor leaves behind on macOS: processes with the mark of its operation.

use std::collections::HashMap;

use rustix::process::Pid;

use super::{census::Membership, mark::Mark, wall::SeatbeltWall};

/// The marks of operations, kept until nothing with them is left.
#[derive(Debug, Default)]
pub(in crate::jail) struct MarkedStrays {
    supervised: HashMap<Pid, Mark>,
    /// Of supervisors that have ended.
    unsupervised: Vec<Mark>,
}

impl MarkedStrays {
    pub(in crate::jail) fn supervisor_started(&mut self, supervisor: Pid, wall: &SeatbeltWall) {
        if let Some(mark) = wall.mark() {
            self.supervised.insert(supervisor, mark);
        }
    }

    pub(in crate::jail) fn supervisor_ended(&mut self, supervisor: Pid) {
        self.unsupervised.extend(self.supervised.remove(&supervisor));
    }

    /// Kills what is left, and forgets a mark that no process has any more.
    pub(in crate::jail) fn sweep(&mut self) {
        self.unsupervised.retain(|mark| {
            let membership = Membership::Mark(*mark);
            let is_left = !membership.members().is_empty();
            if is_left {
                membership.kill();
            }
            is_left
        });
    }

    pub(in crate::jail) fn is_empty(&self) -> bool {
        self.unsupervised.is_empty()
    }
}
