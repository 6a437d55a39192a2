//! Processes that a killed supervisor leaves behind on macOS, found by the mark of its operation.

use std::{collections::HashMap, rc::Rc};

use rustix::process::Pid;

use super::{census::Membership, mark::Mark, mark_record::MarkRecord, wall::SeatbeltWall};

/// The marks of operations, kept until nothing with them is left.
#[derive(Debug)]
pub(in crate::jail) struct MarkedStrays {
    /// None without a sandbox.
    record: Option<Rc<MarkRecord>>,
    supervised: HashMap<Pid, Mark>,
    /// Of supervisors that have ended.
    unsupervised: Vec<Mark>,
}

impl MarkedStrays {
    pub(in crate::jail) fn new(wall: &SeatbeltWall) -> Self {
        Self {
            record: wall.mark_record(),
            supervised: HashMap::new(),
            unsupervised: Vec::new(),
        }
    }

    pub(in crate::jail) fn supervisor_started(&mut self, supervisor: Pid, wall: &SeatbeltWall) {
        let (Some(mark), Some(record)) = (wall.mark(), &self.record) else {
            return;
        };
        self.supervised.insert(supervisor, mark);
        // Without it only a killed jail's operation could outlive its supervisor.
        record.add(mark).ok();
    }

    pub(in crate::jail) fn supervisor_ended(&mut self, supervisor: Pid) {
        self.unsupervised.extend(self.supervised.remove(&supervisor));
    }

    /// Kills what is left, and forgets a mark that no process has any more.
    pub(in crate::jail) fn sweep(&mut self) {
        let record = &self.record;
        self.unsupervised.retain(|mark| {
            let membership = Membership::Mark(*mark);
            if membership.is_empty() {
                if let Some(record) = record {
                    record.remove(*mark);
                }
                return false;
            }
            membership.kill();
            true
        });
    }

    pub(in crate::jail) fn is_empty(&self) -> bool {
        self.unsupervised.is_empty()
    }
}
